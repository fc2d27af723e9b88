"""WebSocket (RFC 6455), the server's side, with the channels of Kubernetes' remote commands."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import struct
from collections.abc import Mapping, Sequence

from proctor_testkit.kube._errors import bad_request
from proctor_testkit.kube._wire import Connection

__all__ = ["CLOSE", "ERROR", "PROTOCOLS", "RESIZE", "STDERR", "STDIN", "STDOUT", "WebSocket", "accept"]

# The channels: the first byte of each message.
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""Those that are spoken, the best first; only in v5 can a client end stdin, by a message on ``CLOSE``."""

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _BINARY, _END, _PING, _PONG = 1, 2, 8, 9, 10
_LIMIT = 32 << 20  # bytes of a message


class WebSocket:
    """One WebSocket, after its handshake."""

    def __init__(self, connection: Connection, protocol: str) -> None:
        self.protocol = protocol
        self._connection = connection
        self._closed = False

    async def receive(self) -> bytes | None:
        """The next message, channel first; None when the client has closed or is gone."""
        parts: list[bytes] = []
        while True:
            try:
                final, opcode, data = await self._frame()
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            if opcode == _PING:
                await self._send(_PONG, data)
            elif opcode == _END:
                await self.close()
                return None
            elif opcode != _PONG:
                parts.append(data)
                if sum(map(len, parts)) > _LIMIT:
                    await self.close(1009)
                    return None
                if final:
                    return b"".join(parts)

    async def send(self, channel: int, data: bytes) -> None:
        """One message on a channel.

        Raises:
            ConnectionError: if the client is gone.
        """
        await self._send(_BINARY, bytes([channel]) + data, is_data=bool(data) and channel in (STDOUT, STDERR))

    async def close(self, code: int = 1000) -> None:
        """Say that nothing follows."""
        if not self._closed:
            self._closed = True
            await self._send(_END, struct.pack("!H", code))

    async def _frame(self) -> tuple[bool, int, bytes]:
        read = self._connection.reader.readexactly
        first, second = await read(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", await read(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await read(8))
        if size > _LIMIT:
            raise ConnectionError("a frame that is too large")
        if not second & 0x80:
            raise ConnectionError("a client masks what it sends")
        mask = await read(4)
        data = await read(size)
        # As one number: byte by byte takes a second for each 10 MB.
        pad = (mask * (size // 4 + 1))[:size]
        plain = (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(size, "big")
        return bool(first & 0x80), first & 0x0F, plain

    async def _send(self, opcode: int, data: bytes, *, is_data: bool = False) -> None:
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 127, size)
        await self._connection.stream(head + data, is_data=is_data)


async def accept(connection: Connection, headers: Mapping[str, str], protocols: Sequence[str] = PROTOCOLS) -> WebSocket:
    """Do the handshake.

    Raises:
        ApiError: if the request is no handshake, or names none of ``protocols``.
    """
    if headers.get("upgrade", "").lower() != "websocket" or "sec-websocket-key" not in headers:
        raise bad_request("unable to upgrade: missing upgrade headers in request (only WebSocket is served)")
    asked = [name.strip() for name in headers.get("sec-websocket-protocol", "").split(",")]
    chosen = next((name for name in protocols if name in asked), None)
    if chosen is None:
        raise bad_request(f"unable to upgrade: none of the protocols {asked} is served, but {list(protocols)} are")
    digest = hashlib.sha1(headers["sec-websocket-key"].encode() + _GUID, usedforsecurity=False).digest()
    accepted = base64.b64encode(digest).decode()
    await connection.switch(
        {"upgrade": "websocket", "sec-websocket-accept": accepted, "sec-websocket-protocol": chosen}
    )
    return WebSocket(connection, chosen)
