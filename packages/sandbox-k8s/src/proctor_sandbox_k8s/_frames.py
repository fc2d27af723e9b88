"""WebSocket frames (RFC 6455), the client's side, and the channels that Kubernetes has in them.

The handshake is websocket-client's, which knows proxies and TLS. What follows is read and written here, from a socket
that never blocks: a command may write while it is still being given its input, and a thread that waits in one cannot do
the other.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["BINARY", "CLOSE", "PING", "PONG", "PROTOCOLS", "TEXT", "BadFrame", "FrameReader", "Message", "encode"]

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_CONTINUED = 0
_LIMIT = 64 << 20  # bytes of a message; servers send 32 KiB at a time

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""What is asked for; nothing here needs what only v5 has, so an older cluster serves as well."""


class BadFrame(Exception):
    """What was received is no WebSocket frame that a server may send."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message, whole.

    Args:
        opcode: ``TEXT``, ``BINARY``, ``CLOSE``, ``PING`` or ``PONG``.
        data: for Kubernetes, the first byte is the channel.
    """

    opcode: int
    data: bytes


def encode(opcode: int, data: bytes, mask: bytes | None = None) -> bytes:
    """A frame of a client: masked, as all of a client's are."""
    mask = os.urandom(4) if mask is None else mask
    size = len(data)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
    # As one number: byte by byte takes a second for each 10 MB.
    pad = (mask * (size // 4 + 1))[:size]
    masked = (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(size, "big")
    return head + mask + masked


class FrameReader:
    """Makes messages of the bytes of a connection, however these are cut."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._opcode: int | None = None

    @property
    def between_messages(self) -> bool:
        """Whether all that was received was whole messages."""
        return not self._buffer and self._opcode is None

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are whole with ``data``.

        Raises:
            BadFrame: if this is no frame.
        """
        self._buffer += data
        while (frame := self._frame()) is not None:
            message = self._whole(*frame)
            if message is not None:
                yield message

    def _frame(self) -> tuple[bool, int, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        first, second = buffer[0], buffer[1]
        if first & 0x70 or second & 0x80:
            raise BadFrame(f"a frame that begins with {buffer[:2].hex()}")
        size, start = second & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            if len(buffer) < start:
                return None
            size = int.from_bytes(buffer[2:start], "big")
        if size > _LIMIT:
            raise BadFrame(f"a frame of {size:,} bytes")
        if len(buffer) < start + size:
            return None
        data = bytes(memoryview(buffer)[start : start + size])
        del buffer[: start + size]
        return bool(first & 0x80), first & 0x0F, data

    def _whole(self, final: bool, opcode: int, data: bytes) -> Message | None:
        if opcode in (CLOSE, PING, PONG):
            if not final or len(data) > 125:
                raise BadFrame("a control frame in parts")
            return Message(opcode, data)
        if opcode not in (_CONTINUED, TEXT, BINARY) or (opcode == _CONTINUED) != (self._opcode is not None):
            raise BadFrame(f"a frame of kind {opcode} out of place")
        self._opcode = self._opcode or opcode
        self._parts.append(data)
        if sum(map(len, self._parts)) > _LIMIT:
            raise BadFrame("a message that is too large")
        if not final:
            return None
        message = Message(self._opcode, b"".join(self._parts))
        self._opcode, self._parts = None, []
        return message
