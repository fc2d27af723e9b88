"""What a container writes, as the engine sends it: frames of standard output and standard error."""

from __future__ import annotations

import struct

__all__ = ["Frames"]

_HEADER = struct.Struct(">BxxxL")  # the stream, and how many bytes of it follow


class Frames:
    """Takes the frames apart and keeps what is in them, each stream up to a limit.

    The format is that of the engine's API ("Stream format" of ContainerAttach).

    Args:
        limit: bytes of each stream; further ones are dropped.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = {1: bytearray(), 2: bytearray()}
        self._pending = b""
        self._stream = 1
        self._left = 0
        """Bytes of the current frame that have not come yet."""
        self.full: int | None = None
        """The first stream that held more than the limit."""

    @property
    def stdout(self) -> bytes:
        """What has come on standard output."""
        return bytes(self._kept[1])

    @property
    def stderr(self) -> bytes:
        """What has come on standard error."""
        return bytes(self._kept[2])

    @property
    def whole(self) -> bool:
        """Whether the last frame has come to its end."""
        return not self._left and not self._pending

    def feed(self, data: bytes) -> None:
        """Take in what the engine sent next."""
        view = memoryview(self._pending + data if self._pending else data)
        at = 0
        while at < len(view):
            if self._left:
                taken = view[at : at + self._left]
                self._keep(taken)
                at += len(taken)
                self._left -= len(taken)
                continue
            if len(view) - at < _HEADER.size:
                break
            self._stream, self._left = _HEADER.unpack_from(view, at)
            at += _HEADER.size
        self._pending = bytes(view[at:])

    def _keep(self, data: memoryview) -> None:
        kept = self._kept[2 if self._stream == 2 else 1]
        room = self._limit - len(kept)
        if len(data) > room:
            data = data[:room]
            self.full = self.full or self._stream
        kept += data
