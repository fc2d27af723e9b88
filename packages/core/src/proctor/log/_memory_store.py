"""Logs in the memory of this process, for tests and for notebooks that keep nothing."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator

from proctor.contracts import LogBusyError, LogLease, LogSink, LogStore, Stat

__all__ = ["MemoryStore"]


class _File:
    __slots__ = ("data", "mtime", "version")

    def __init__(self, data: bytes = b"", *, version: int = 0) -> None:
        self.data = bytearray(data)
        self.version = version
        self.mtime = time.time()

    def stat(self) -> Stat:
        return Stat(len(self.data), str(self.version), self.mtime)


_files: dict[str, _File] = {}
_holders: dict[str, tuple[LogSink | LogLease, float]] = {}  # who writes or holds a log, and since when
_lock = threading.RLock()


class MemoryStore(LogStore):
    """All instances in a process share one set of logs, as files are shared."""

    def create(self, name: str) -> LogSink:
        """A new log; ``FileExistsError`` if there is one of that name."""
        if not name or name.endswith("/"):
            raise IsADirectoryError(f"{name!r} names a folder, not a log")
        with _lock:
            if name in _files:
                raise FileExistsError(name)
            file = _files[name] = _File()
            sink = _MemorySink(name, file)
            _holders[name] = sink, time.time()
        return sink

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes ``[start, end)`` of a log."""
        with _lock:
            return bytes(self._file(name).data[start:end])

    def stat(self, name: str) -> Stat:
        """Size, etag and time of change of a log."""
        with _lock:
            return self._file(name).stat()

    def list(self, prefix: str, *, recursive: bool = True) -> Iterator[tuple[str, Stat]]:
        """The logs whose names begin with the folder ``prefix``."""
        folder = prefix.rstrip("/") + "/" if prefix.strip("/") else ""
        with _lock:
            found = [(name, file.stat()) for name, file in sorted(_files.items()) if name.startswith(folder)]
        for name, stat in found:
            if recursive or "/" not in name[len(folder) :]:
                yield name, stat

    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        """Put new content in the place of the old."""
        data = b"".join(chunks)  # before the lock: the chunks may be read from this store
        with _lock:
            known = _files.get(name)
            if if_match is not None and (known is None or known.stat().etag != if_match):
                raise FileExistsError(f"somebody else has changed {name}; read it again")
            file = _files[name] = _File(data, version=known.version + 1 if known else 0)
            return file.stat()

    def delete(self, name: str) -> None:
        """Remove a log."""
        with _lock:
            self._file(name)
            del _files[name]
            _holders.pop(name, None)

    def live(self, name: str) -> bool:
        """Whether the sink of a log is open, or somebody holds it."""
        with _lock:
            self._file(name)
            return name in _holders

    def hold(self, name: str) -> LogLease:
        """Claim a log that nobody in this process writes or holds."""
        with _lock:
            self._file(name)
            if name in _holders:
                raise LogBusyError(name, host=socket.gethostname(), pid=os.getpid(), since=_holders[name][1])
            lease = _MemoryLease(name)
            _holders[name] = lease, time.time()
        return lease

    def _file(self, name: str) -> _File:
        try:
            return _files[name]
        except KeyError:
            raise FileNotFoundError(f"no log named {name} in memory") from None


class _MemorySink(LogSink):
    def __init__(self, name: str, file: _File) -> None:
        self._name = name
        self._file = file
        self._end = 0

    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        with _lock:
            self._file.data[self._end :] = segment + directory
            self._end += len(segment)
            self._file.version += 1
            self._file.mtime = time.time()

    def close(self) -> None:
        _release(self._name, self)


class _MemoryLease(LogLease):
    def __init__(self, name: str) -> None:
        self._name = name

    def close(self) -> None:
        _release(self._name, self)


def _release(name: str, holder: LogSink | LogLease) -> None:
    with _lock:
        if name in _holders and _holders[name][0] is holder:  # not that of a log that took the name since
            del _holders[name]
