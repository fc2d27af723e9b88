"""HTTP/1.1 of the fake Kubernetes: requests as they come in, answers as they go out, and how both break."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from proctor_testkit.kube._errors import ApiError, bad_request

__all__ = ["HEAD_LIMIT", "Connection", "KubeRequest", "StreamFault"]

HEAD_LIMIT = 1 << 20
"""Bytes of a request's line and headers, as Go's server has it."""

_BODY_LIMIT = 3 << 20  # as the real server has it
_DROP = 48  # bytes that drip at once


@dataclass(frozen=True, slots=True)
class KubeRequest:
    """A request that came in.

    Attributes:
        kind: what it asks for in two words: ``create pods``, ``watch pods``, ``exec pods``, ``get discovery``.
        namespace: "" for what belongs to the cluster.
        name: of the object; "" if it is about many.
        query: with all values of each parameter.
    """

    kind: str
    method: str
    path: str
    namespace: str
    name: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    def one(self, parameter: str, default: str = "") -> str:
        """The first value of a query parameter."""
        return self.query.get(parameter, [default])[0]

    def flag(self, parameter: str) -> bool:
        """A query parameter that is true or false."""
        return self.one(parameter) in ("true", "1")

    def object(self) -> dict[str, Any]:
        """Its body as an object, of JSON or YAML.

        Raises:
            ApiError: if it is none.
        """
        if not self.body:
            return {}
        if "protobuf" in self.headers.get("content-type", ""):
            raise ApiError(415, "the fake Kubernetes reads JSON and YAML, and no protobuf: say it as `create -f`")
        try:
            made = json.loads(self.body)
        except ValueError:
            made = self._yaml()
        if not isinstance(made, dict):
            raise bad_request("the object provided is unrecognized")
        return made

    def _yaml(self) -> Any:
        import yaml

        if "yaml" not in self.headers.get("content-type", ""):
            raise bad_request("the object provided is unrecognized: it is not JSON")
        try:
            return yaml.safe_load(self.body)
        except yaml.YAMLError as error:
            raise bad_request(f"error decoding YAML: {error}") from None


@dataclass(slots=True)
class StreamFault:
    """How what is sent after the head of an answer goes wrong.

    Attributes:
        after: send so many bytes and no more ...
        stall: ... and be silent from then on; else the connection is reset.
        drip: send a few bytes at a time, so many seconds apart.
        half: of the first frame that carries data only the half is sent.
    """

    after: int | None = None
    stall: bool = False
    drip: float = 0.0
    half: bool = False

    def fresh(self) -> StreamFault:
        """The same, for another connection."""
        return replace(self)


@dataclass(slots=True, eq=False)
class Connection:
    """One connection of a client; with ``lost`` no answer reaches it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    fault: StreamFault | None = None
    lost: bool = False
    _sent: int = 0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def request(self) -> tuple[str, str, dict[str, list[str]], dict[str, str], bytes]:
        """The next request: method, path, query, headers and body.

        Raises:
            ApiError: if it is too large.
            asyncio.IncompleteReadError: if the client went away.
        """
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except asyncio.LimitOverrunError:
            raise ApiError(431, "the request's headers are too large") from None
        method, target, _ = head[0].split(" ", 2)
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        parts = urlsplit(target)
        return method, unquote(parts.path), parse_qs(parts.query, True), headers, await self._body(headers)

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            size = int(headers.get("content-length", "0"))
            if size > _BODY_LIMIT:
                raise ApiError(413, f"Request entity too large: limit is {_BODY_LIMIT}")
            return await self.reader.readexactly(size)
        body = bytearray()
        while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)
        return bytes(body)

    async def reply(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer with JSON, or with text if ``body`` is bytes."""
        raw = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
        kind = "text/plain" if isinstance(body, bytes) else "application/json"
        lines = {"content-type": kind, "content-length": str(len(raw)), **(headers or {})}
        await self._write(self._head(status, lines))
        await self.stream(raw)

    async def chunks(self, pieces: AsyncGenerator[bytes, None], kind: str) -> None:
        """Answer with a body that goes out piece by piece, until the client goes away."""
        await self._write(self._head(200, {"content-type": kind, "transfer-encoding": "chunked"}))
        async with aclosing(pieces):
            async for piece in pieces:
                await self.stream(b"%x\r\n%b\r\n" % (len(piece), piece))
        await self.stream(b"0\r\n\r\n")

    async def switch(self, headers: Mapping[str, str]) -> None:
        """Answer that from now on another protocol is spoken."""
        await self._write(self._head(101, {"connection": "Upgrade", **headers}))

    async def stream(self, data: bytes, *, is_data: bool = True) -> None:
        """Send bytes of an answer's body or of frames, as the fault lets them through.

        Raises:
            ConnectionResetError: if the fault has cut the connection.
        """
        fault = self.fault
        async with self._lock:
            if fault is None:
                await self._write(data)
                return
            if fault.half and is_data:
                fault.after = self._sent + max(1, len(data) // 2)
            left = len(data) if fault.after is None else max(0, fault.after - self._sent)
            self._sent += len(data)
            for start in range(0, min(left, len(data)), step := _DROP if fault.drip else len(data) or 1):
                await self._write(data[start : min(left, start + step)])
                await asyncio.sleep(fault.drip)
            if left < len(data) or fault.after == self._sent:
                if fault.stall:
                    await asyncio.Event().wait()
                self.reset()
                raise ConnectionResetError("cut, as told")

    def reset(self) -> None:
        """Reset the connection: nothing is answered, not even an end."""
        if (connection := self.writer.get_extra_info("socket")) is not None:
            # A close that does not wait for data still unsent, of 0 seconds, is a reset (socket(7), SO_LINGER).
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the client goes away."""
        while await self.reader.read(1 << 16):
            pass

    async def _write(self, data: bytes) -> None:
        if self.lost:
            self.reset()
        if self.writer.transport.is_closing():
            raise ConnectionResetError("the client went away")
        self.writer.write(data)
        await self.writer.drain()

    @staticmethod
    def _head(status: int, headers: Mapping[str, str]) -> bytes:
        reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Unknown"
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {status} {reason}\r\n{lines}\r\n".encode("latin-1")
