"""As much of a Docker engine's HTTP API as the fake Kubernetes needs, in asyncio."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

__all__ = ["Engine", "EngineError", "Stream"]

_DEFAULT = "unix:///var/run/docker.sock"


class EngineError(OSError):
    """What the engine refused; ``status`` is 0 when it did not answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Stream:
    """An answer that is read piece by piece, and after an upgrade also written to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chunked: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._chunked = chunked
        self._rest = b""

    async def read(self, size: int) -> bytes:
        """Exactly so many bytes; fewer only at the end."""
        while len(self._rest) < size and (piece := await self.piece()):
            self._rest += piece
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    async def piece(self) -> bytes:
        """Some bytes, as they come; none at the end."""
        try:
            if not self._chunked:
                return await self._reader.read(1 << 15)
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            data = await self._reader.readexactly(size)
            await self._reader.readexactly(2)
            return data
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def frames(self, raw: bool = False) -> AsyncIterator[tuple[int, bytes]]:
        """Output with its channel, 1 or 2; all of it is of 1 if the stream is ``raw``."""
        while raw and (piece := await self.piece()):
            yield 1, piece
        while not raw and len(head := await self.read(8)) == 8:
            left = int.from_bytes(head[4:], "big")
            while left and (data := await self.read(min(left, 1 << 15))):
                left -= len(data)
                yield head[0], data

    async def write(self, data: bytes) -> None:
        """Send input; it is lost if nobody reads it any more."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            return

    def end_input(self) -> None:
        """Say that no input follows."""
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()

    def close(self) -> None:
        """Read no more."""
        self._writer.close()


class Engine:
    """An engine at an address such as ``unix:///var/run/docker.sock`` or ``tcp://127.0.0.1:2375``."""

    def __init__(self, host: str | None = None) -> None:
        self.host = host or os.environ.get("DOCKER_HOST") or _DEFAULT

    async def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """A request and its answer, of JSON.

        Raises:
            EngineError: if it is refused, or the engine does not answer.
        """
        stream = await self.open(method, path, body, **query)
        try:
            parts = []
            while piece := await stream.piece():
                parts.append(piece)
        finally:
            stream.close()
        raw = b"".join(parts)
        return json.loads(raw) if raw.strip() else None

    async def open(self, method: str, path: str, body: Any = None, *, upgrade: bool = False, **query: Any) -> Stream:
        """A request, and its answer as a stream; ``bytes`` as a body are a tar archive.

        Raises:
            EngineError: as of ``call``.
        """
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        target = quote(path, safe="/:@?=") + (f"?{urlencode(query)}" if query else "")
        lines = {"Host": "engine", "Content-Length": str(len(raw)), "Connection": "close"}
        lines["Content-Type"] = "application/x-tar" if isinstance(body, bytes) else "application/json"
        if upgrade:
            lines |= {"Connection": "Upgrade", "Upgrade": "tcp"}
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        try:
            reader, writer = await self._connect()
        except OSError as error:
            raise EngineError(0, f"no Docker engine answers at {self.host}: {error}") from None
        try:
            writer.write(head.encode() + b"\r\n" + raw)
            await writer.drain()
            status, headers = await self._head(reader)
            stream = Stream(reader, writer, headers.get("transfer-encoding") == "chunked")
            if status >= 400:
                said = b"".join([piece async for _, piece in stream.frames(raw=True)])
                raise EngineError(status, _message(said))
            return stream
        except EngineError:
            writer.close()
            raise
        except (OSError, asyncio.IncompleteReadError) as error:
            writer.close()
            raise EngineError(0, f"the Docker engine at {self.host} broke off: {error!r}") from None
        except BaseException:
            writer.close()
            raise

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        parts = urlsplit(self.host)
        if parts.scheme == "unix":
            return await asyncio.open_unix_connection(parts.path)
        if parts.scheme in ("tcp", "http"):
            return await asyncio.open_connection(parts.hostname, parts.port or 2375)
        raise EngineError(0, f"DOCKER_HOST={self.host}: the fake Kubernetes reaches engines by unix:// and tcp:// only")

    @staticmethod
    async def _head(reader: asyncio.StreamReader) -> tuple[int, Mapping[str, str]]:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines[1:] if line)
        return int(lines[0].split(" ")[1]), {name.strip().lower(): value.strip().lower() for name, _, value in pairs}


def _message(said: bytes) -> str:
    try:
        return str(json.loads(said)["message"])
    except (ValueError, KeyError, TypeError):
        return said.decode("utf-8", "replace")
