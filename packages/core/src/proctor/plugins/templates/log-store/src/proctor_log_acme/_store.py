"""A log store in a folder of this machine: the whole contract in its shortest form."""

from __future__ import annotations

import errno
import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from proctor.contracts import LogSink, LogStore, Stat, UsageError


class AcmeStore(LogStore):
    """Logs as files below a root folder; a name is what follows ``acme://``.

    Args:
        root: the folder; by default what ``ACME_LOG_ROOT`` names, else ``~/.acme-logs``.
    """

    _replacing = threading.Lock()  # one edit at a time, for all stores of this process

    def __init__(self, root: str | None = None) -> None:
        self.root = Path(root or os.environ.get("ACME_LOG_ROOT") or "~/.acme-logs").expanduser()
        self._unfinished = self.root / ".unfinished"

    def check(self, folder: str, *, dry: bool = False) -> None:
        """Say before the run, not after it, that nothing can be written."""
        there = next(path for path in (self._path(folder), *self._path(folder).parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise UsageError(f"no log can be written to acme://{folder}: {there} is no folder that you may write to")

    def create(self, name: str) -> LogSink:
        """A file that was not there: of all who try, one gets it."""
        path = self._log_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return _Sink(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from ``start`` up to ``end``."""
        with self._log_path(name).open("rb") as file:
            file.seek(start)
            return file.read() if end is None else file.read(max(0, end - start))

    def stat(self, name: str) -> Stat:
        """What can be known without reading the log."""
        return _stat(os.stat(self._log_path(name)))

    def list(self, prefix: str, *, recursive: bool = True) -> Iterator[tuple[str, Stat]]:
        """Everything below the folder, under the names that the other methods take."""
        folder = self._path(prefix)
        for path in folder.rglob("*") if recursive else folder.glob("*"):
            if path.is_file() and path.parent != self._unfinished:
                yield path.relative_to(self.root).as_posix(), _stat(path.stat())

    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        """Write a file beside the log and rename it: readers see all of the old content or all of the new."""
        path = self._log_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._unfinished.mkdir(exist_ok=True)
        beside = self._unfinished / secrets.token_hex(8)
        try:
            with beside.open("xb") as file:
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            with self._replacing:
                if if_match is not None and self.stat(name).etag != if_match:
                    raise FileExistsError(errno.EEXIST, "somebody else has changed the log; read it again", name)
                _advance(beside, path.stat().st_mtime_ns if path.exists() else 0)
                os.replace(beside, path)
                return self.stat(name)
        finally:
            beside.unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        """Remove the log; whoever still writes it writes to nowhere."""
        self._log_path(name).unlink()

    def _path(self, name: str) -> Path:
        path = self.root / name.strip("/")
        if ".." in path.parts:
            raise UsageError(f"acme://{name} leads out of {self.root}")
        return path

    def _log_path(self, name: str) -> Path:
        if not name or name.endswith("/"):
            raise IsADirectoryError(errno.EISDIR, "it names a folder, not a log", name)
        return self._path(name)


class _Sink(LogSink):
    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._end = 0  # of the segments: the directory stands behind them, and the next segment takes its place

    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        before = os.fstat(self._handle).st_mtime_ns
        rest = memoryview(segment + directory)
        size, at = self._end + len(rest), self._end
        while rest:
            written = os.pwrite(self._handle, rest, at)
            rest, at = rest[written:], at + written
        os.ftruncate(self._handle, size)
        os.fsync(self._handle)  # durable on return: the core drops what it has committed
        _advance(self._handle, before)
        self._end += len(segment)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _stat(found: os.stat_result) -> Stat:
    return Stat(found.st_size, f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}", found.st_mtime)


def _advance(file: int | Path, before: int) -> None:
    """Give a file a later time than ``before``: two changes in one tick of the clock would share an etag."""
    found = os.stat(file)
    if found.st_mtime_ns <= before:
        os.utime(file, ns=(found.st_atime_ns, before + 1))
