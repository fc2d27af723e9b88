"""Logs in folders of this machine."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from proctor.contracts import LogLease, LogSink, LogStore, Stat, UsageError
from proctor.log._file_lease import FileLease, keeping_lease, lock, locked
from proctor.log._zip_read import BadLogError

__all__ = ["FileStore"]


class FileStore(LogStore):
    """Plain files. A log that is being written is locked (``flock``), so a dead run can be told from a live one."""

    def check(self, folder: str, *, dry: bool = False) -> None:
        """Make a file in the folder, and the folder; with ``dry``, look at its permissions only."""
        path = Path(folder)
        try:
            if dry:
                _check_writable(path)
                return
            path.mkdir(parents=True, exist_ok=True)
            probe = path / f".proctor-{secrets.token_hex(8)}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UsageError(
                f"no log can be written to {folder}: {error.strerror}. Name another with --log-dir or PROCTOR_LOG_DIR"
            ) from error

    def create(self, name: str) -> LogSink:
        """A new file, made together with its folder; ``FileExistsError`` if there is one of that name."""
        if not os.path.basename(name):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        path = Path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:  # the name is not what is taken
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent)) from error
        sink = _FileSink(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666))
        _sync_folder(path.parent)
        return sink

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes ``[start, end)`` of a file."""
        with open(name, "rb", opener=_open_file) as file:
            file.seek(start)
            return file.read() if end is None else file.read(max(0, end - start))

    def stat(self, name: str) -> Stat:
        """Size, etag (inode, size, time of change) and time of change of a file."""
        return _stat(os.stat(name))

    def list(self, prefix: str, *, recursive: bool = True) -> Iterator[tuple[str, Stat]]:
        """The files below a folder; what can't be looked at is left out."""
        folders = [prefix]
        while folders:
            try:
                found = sorted(os.scandir(folders.pop()), key=lambda item: item.name)
            except OSError:
                continue
            for item in found:
                with suppress(OSError):
                    if item.is_file():
                        yield item.path, _stat(item.stat())
                    elif recursive and item.is_dir(follow_symlinks=False):
                        folders.append(item.path)

    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        """Write a temporary file beside the log and rename it; a process that is killed meanwhile leaves none."""
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(8)}")
        handle, nameless = _new_file(temporary)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(chunks)
                file.flush()
                with suppress(FileNotFoundError):
                    os.fchmod(handle, path.stat().st_mode & 0o777)
                os.fsync(handle)
                if nameless:
                    # With a descriptor among the arguments Python asks the kernel to follow the link in /proc.
                    os.link(f"/proc/self/fd/{handle}", temporary, src_dir_fd=handle)
            with keeping_lease(name, str(temporary), claim=if_match is not None):
                if if_match is not None and self.stat(name).etag != if_match:
                    raise FileExistsError(errno.EEXIST, "somebody else has changed the log; read it again", name)
                with suppress(FileNotFoundError):
                    _follow(temporary, path.stat().st_mtime_ns)
                written = self.stat(str(temporary))
                os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        _sync_folder(path.parent)
        return written

    def delete(self, name: str) -> None:
        """Remove a file."""
        os.unlink(name)

    def live(self, name: str) -> bool:
        """Whether a process holds the lock of a log."""
        return locked(name)

    def hold(self, name: str) -> LogLease:
        """Take the lock of a log; where there are no locks (Windows, some network file systems), nothing is held."""
        return FileLease(name)


class _FileSink(LogSink):
    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._end = 0  # of the segments; the directory stands there
        self._reach = 0  # behind the last byte of the file that may have been written
        self._changed = 0  # when it was last changed, in ns
        if not lock(handle):
            os.close(handle)
            raise FileExistsError(errno.EEXIST, "somebody else has taken the new log")

    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        offset = self._end
        size = offset + len(segment) + len(directory)
        self._reach = max(self._reach, size)  # before the write, which may fail when most of it is done
        _write(self._handle, segment, directory, offset)
        if size < self._reach:
            os.ftruncate(self._handle, size)
            self._reach = size
        _sync(self._handle)
        self._changed = _follow(self._handle, self._changed)
        self._end = offset + len(segment)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)  # this drops the lock, too
            self._handle = -1


def _open_file(name: str, flags: int) -> int:
    """A handle for reading a file; a pipe, whose opening would wait for a writer, and its like are no files."""
    handle = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    raise BadLogError(f"{name} is neither a file nor a folder")


def _check_writable(folder: Path) -> None:
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise NotADirectoryError(0, "Not a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(0, "Permission denied")


def _new_file(path: Path) -> tuple[int, bool]:
    """A file to write, and whether it has no name yet (on Linux, where the file system can do that).

    Not `mkstemp`, whose files are for the owner alone: the process's mask, which is nowhere to be read without changing
    it for all threads, is applied here by the kernel.
    """
    if sys.platform == "linux" and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):
            return os.open(path.parent, os.O_WRONLY | os.O_TMPFILE, 0o666), True
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), False


def _write(handle: int, segment: bytes, directory: bytes | bytearray, offset: int) -> None:
    """One ``pwritev`` for both, so that a dead process leaves the log as it was before the commit or as it is after it.

    Readers may still see it in part, while the kernel copies (see ``_steady``).
    """
    total = len(segment) + len(directory)
    if hasattr(os, "pwritev"):
        done = os.pwritev(handle, [segment, directory], offset)
    else:
        os.lseek(handle, offset, os.SEEK_SET)
        done = os.write(handle, segment + directory)
    if done < total:
        rest = memoryview(segment + directory)
        while done < total:
            os.lseek(handle, offset + done, os.SEEK_SET)
            done += os.write(handle, rest[done:])


def _follow(file: int | Path, before: int) -> int:
    """See to it that a file has a later time of change than ``before`` (in ns), and return it.

    The clock of a file system ticks every few milliseconds, and a freed inode is given to the next file: two contents
    of one size would have one etag.
    """
    found = os.stat(file)
    if found.st_mtime_ns > before:
        return found.st_mtime_ns
    os.utime(file, ns=(found.st_atime_ns, before + 1))
    return before + 1


def _sync(handle: int) -> None:
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(handle)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every file system lets a folder be synced
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _stat(found: os.stat_result) -> Stat:
    return Stat(found.st_size, f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}", found.st_mtime)
