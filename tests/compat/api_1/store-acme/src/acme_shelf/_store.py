"""A shelf: each log is a folder with what is written so far, and the directory that stands behind it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from proctor.contracts import LogBusyError, LogLease, LogSink, LogStore, Stat, UsageError

SUFFIX = ".log"  # of the folders that are logs


def _box(name: str) -> Path:
    return Path(name + SUFFIX)


def _content(box: Path) -> bytes:
    """The current version: what ``current`` says that it is."""
    try:
        version = (box / "current").read_text()
        segments, directory = version.split()
        return (box / segments.partition(":")[0]).read_bytes()[: int(segments.partition(":")[2])] + (
            b"" if directory == "-" else (box / directory).read_bytes()
        )
    except NotADirectoryError:
        raise FileNotFoundError(f"no log on the shelf: {box}") from None


def _put(path: Path, data: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    with open(fresh, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)


def _lock(box: Path) -> IO[bytes] | None:
    handle = open(box / "lock", "ab")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        return None
    return handle


class Lease(LogLease):
    def __init__(self, handle: IO[bytes]) -> None:
        self._handle = handle

    def close(self) -> None:
        self._handle.close()


class Sink(LogSink):
    def __init__(self, box: Path, handle: IO[bytes]) -> None:
        self._box, self._handle = box, handle
        self._length, self._count = 0, 0

    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        with open(self._box / "segments", "r+b") as file:
            file.seek(self._length)
            file.write(segment)
            file.flush()
            os.fsync(file.fileno())
        name = f"directory{(self._count + 1) % 2}"
        _put(self._box / name, bytes(directory))
        _put(self._box / "current", f"segments:{self._length + len(segment)} {name}".encode())
        self._length += len(segment)
        self._count += 1

    def close(self) -> None:
        self._handle.close()


class Shelf(LogStore):
    """Logs on this machine, a folder each."""

    def check(self, folder: str, *, dry: bool = False) -> None:
        if not Path(folder).is_absolute():
            raise UsageError(f"shelf://{folder}: a shelf is named by an absolute path, as in shelf:///tmp/shelf.")
        if not dry:
            Path(folder).mkdir(parents=True, exist_ok=True)

    def create(self, name: str) -> LogSink:
        if not name or name.endswith("/"):
            raise IsADirectoryError(f"{name!r} is no name of a log")
        box = _box(name)
        box.parent.mkdir(parents=True, exist_ok=True)
        box.mkdir()
        handle = _lock(box)
        assert handle is not None
        (box / "segments").touch()
        _put(box / "current", b"segments:0 -")
        return Sink(box, handle)

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        return _content(_box(name))[start:end]

    def stat(self, name: str) -> Stat:
        data = _content(_box(name))
        return Stat(len(data), hashlib.sha256(data).hexdigest(), (_box(name) / "current").stat().st_mtime)

    def list(self, prefix: str, *, recursive: bool = True) -> Iterator[tuple[str, Stat]]:
        folder = Path(prefix)
        for box in folder.rglob("*" + SUFFIX) if recursive else folder.glob("*" + SUFFIX):
            name = str(box).removesuffix(SUFFIX)
            try:
                yield name, self.stat(name)
            except FileNotFoundError:
                continue

    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        box, data = _box(name), b"".join(chunks)
        box.parent.mkdir(parents=True, exist_ok=True)
        with open(box.parent / "edits", "ab") as edits:
            fcntl.flock(edits, fcntl.LOCK_EX)  # one edit at a time
            if if_match is not None and (not box.is_dir() or self.stat(name).etag != if_match):
                raise FileExistsError(f"somebody else has changed {name}")
            box.mkdir(exist_ok=True)
            version = f"whole-{hashlib.sha256(data).hexdigest()[:16]}"
            _put(box / version, data)
            _put(box / "current", f"{version}:{len(data)} -".encode())
            return self.stat(name)

    def delete(self, name: str) -> None:
        if not _box(name).is_dir():
            raise FileNotFoundError(name)
        shutil.rmtree(_box(name))

    def live(self, name: str) -> bool:
        self.stat(name)
        handle = _lock(_box(name))
        if handle is not None:
            handle.close()
        return handle is None

    def hold(self, name: str) -> LogLease:
        self.stat(name)
        handle = _lock(_box(name))
        if handle is None:
            raise LogBusyError(name)
        return Lease(handle)
