"""A store in memory that can be out of reach, as one on the network can."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from typing import ClassVar

from proctor.contracts import LogSink, Stat
from proctor.log import MemoryStore

__all__ = ["GONE", "UNREACHABLE", "LostStore"]

GONE = FileNotFoundError(errno.ENOENT, "there is no bucket 'b'")
UNREACHABLE = OSError(errno.EHOSTUNREACH, "the store can't be reached")


class LostStore(MemoryStore):
    """Raises ``error`` at every write while it is set; ``on_write`` is called before each write with their number."""

    local: ClassVar[bool] = False
    error: ClassVar[OSError | None] = None
    writes: ClassVar[int] = 0
    on_write: ClassVar[Callable[[int], object] | None] = None

    @classmethod
    def write(cls) -> None:
        cls.writes += 1
        if cls.on_write is not None:
            cls.on_write(cls.writes)
        if cls.error is not None:
            raise cls.error

    def create(self, name: str) -> LogSink:
        self.write()
        return _Sink(super().create(name))

    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        self.write()
        return super().replace(name, chunks, if_match)


class _Sink(LogSink):
    def __init__(self, sink: LogSink) -> None:
        self._sink = sink

    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        LostStore.write()
        self._sink.commit(segment, directory)

    def close(self) -> None:
        LostStore.write()
        self._sink.close()

    def abandon(self) -> None:
        self._sink.close()
