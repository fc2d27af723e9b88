"""Who has a log file: ``flock``, which the kernel gives back when its holder dies, however it dies."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from types import ModuleType

from proctor.contracts import LogBusyError, LogLease

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no flock: logs there have no lease
    fcntl = None

__all__ = ["FileLease", "keeping_lease", "lock", "locked"]

_TRIES = 100
_PAUSE = 0.002  # seconds

_held: dict[str, FileLease] = {}  # those of this process, by real path
_guard = threading.RLock()


class FileLease(LogLease):
    """The lock of a file that is there already.

    Raises:
        LogBusyError: somebody else has it.
        FileNotFoundError: there is no such file.
    """

    def __init__(self, name: str) -> None:
        self._path = os.path.realpath(name)
        self._handle = _opened(name)
        try:
            while not self._is_current():  # replaced between the opening and the lock
                handle = _opened(name)
                os.close(self._handle)
                self._handle = handle
            with _guard:
                _held[self._path] = self
        except BaseException:
            os.close(self._handle)
            raise

    def _is_current(self) -> bool:
        if not lock(self._handle):
            raise LogBusyError(self._path, host=socket.gethostname(), pid=_holder(self._handle))
        mine, there = os.fstat(self._handle), os.stat(self._path)
        return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)

    @contextmanager
    def moving(self, successor: str) -> Iterator[None]:
        """Have the lock of ``successor`` too while it is renamed over the file, and of it alone afterwards.

        Who waits for the old file finds that it is not the log any more once it is let go.
        """
        handle = _opened(successor)
        try:
            lock(handle)
            yield
        except BaseException:
            os.close(handle)
            raise
        former, self._handle = self._handle, handle
        os.close(former)

    def close(self) -> None:
        with _guard:
            if self._handle >= 0:
                if _held.get(self._path) is self:
                    del _held[self._path]
                os.close(self._handle)
                self._handle = -1


@contextmanager
def keeping_lease(name: str, successor: str, *, claim: bool = False) -> Iterator[None]:
    """Rename ``successor`` over ``name`` in the block: the lease that this process has, if any, stays with the name.

    With ``claim`` nobody else can change the file meanwhile, whether this process has a lease or not.

    Raises:
        LogBusyError: it was to be claimed, and somebody else has it.
    """
    with _guard, ExitStack() as stack:
        lease = _held.get(os.path.realpath(name))
        if lease is None and claim:
            lease = FileLease(name)
            stack.callback(lease.close)
        with lease.moving(successor) if lease is not None else nullcontext():
            yield


def lock(handle: int) -> bool:
    """Hold the lock of an open file until it is closed; false when somebody else has it.

    A reader that asks whether a log is live has the lock for a moment. Where there are no locks, nobody has any.
    """
    if fcntl is None:
        return True
    for _ in range(_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError:  # some network file systems have no locks
            return True
    return False


def locked(name: str) -> bool:
    """Whether somebody holds the lock of a file."""
    if fcntl is None:
        return False
    handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK)  # of a pipe that nobody writes to, too
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(handle)
    return False


def _opened(name: str) -> int:
    """A handle for a lock: network file systems want one that could write; a log that is read-only has the other."""
    flags = getattr(os, "O_CLOEXEC", 0)
    with suppress(PermissionError):
        return os.open(name, os.O_RDWR | flags)
    return os.open(name, os.O_RDONLY | flags)


def _holder(handle: int) -> int | None:
    """The process that has the lock of an open file, where the kernel tells (Linux, in this pid namespace)."""
    wanted = os.fstat(handle).st_ino
    try:
        with open("/proc/locks", encoding="ascii") as rows:
            for row in rows:
                fields = row.split()
                if fields[1:2] == ["FLOCK"] and fields[5].rpartition(":")[2] == str(wanted):
                    return int(fields[4]) if int(fields[4]) > 0 else None
    except (OSError, ValueError, IndexError):
        pass
    return None
