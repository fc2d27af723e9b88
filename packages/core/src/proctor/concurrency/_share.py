"""Limits that processes on one machine share, without a broker: a small file in memory, and the kernel's locks.

The file has a header and one row a process. A process owns its row for as long as it holds the lock of the row's byte;
the kernel drops that lock when the process dies, however it dies, and with it everything that the row says it holds.
Changes are made under the lock of byte 0, which is held for microseconds. (POSIX record locks, fcntl(2): they belong to
a process, not to a thread, hence the thread lock beside them; a child of a fork has none and takes a row of its own.)
A process that is stopped at that very moment must not stop the others: after a while they go on without the lock, by
what the file says. Nobody writes another's row, so what can go wrong then is a place or a request too many.

Waiting is polling, every 10 ms and by one waiter a gate, but only for places that another process gives back: within a
process they go from hand to hand.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from proctor.concurrency._gate import Gate
from proctor.concurrency._pacing import Budget
from proctor.contracts import UsageError
from proctor.monitor import runtime_dir

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["Row", "SharedGate", "SharedPool", "check_share_name", "shared_pool"]

_MAGIC = b"proctor1"
_HEADER = struct.Struct("<8sIiq2d")  # magic, generation, adaptive limit (0: none), rows in use, next request and token
_LIMIT, _LIMIT_AT = struct.Struct("<Ii"), 8  # the parts of it that change by themselves
_NEXT, _NEXT_AT = struct.Struct("<2d"), 24
_ROW = struct.Struct("<qiii4xd")  # process, holders, waiters, its limit (0: adaptive), when it last looked
_ROWS_AT = 64
_ROW_SIZE = 32
_ROWS = 128  # processes at most
_SIZE = _ROWS_AT + _ROWS * _ROW_SIZE
_ASLEEP = 0.25  # seconds without a look after which nobody leaves a place to a process that waits
_REAP = 0.05  # seconds between looks for processes that died
_PATIENCE = 0.015  # seconds that a loop may stand still for the lock of byte 0
_STOPPED = 0.25  # seconds without that lock after which its holder is taken for stopped
_AGAIN = 0.01  # seconds until the next try


class Row(NamedTuple):
    """What one process says of itself."""

    process: int
    held: int
    waiting: int
    limit: int
    seen: float


class SharedPool:
    """The places of one connection key, shared by all processes that opened the same file.

    Args:
        path: the file; made when it is not there.

    Raises:
        UsageError: too many processes share it.
    """

    def __init__(self, path: Path) -> None:
        if fcntl is None:
            raise UsageError("--share needs record locks, which this platform does not have")
        self._fcntl = fcntl
        self._thread_lock = threading.RLock()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        self._process = os.getpid()
        self._late: float | None = None
        """Since when the lock can't be had."""
        self._index = -1
        self._held = self._waiting = self._limit = 0
        with self._changes():
            if os.fstat(self._file).st_size < _SIZE:
                os.ftruncate(self._file, _SIZE)
            self._map = mmap.mmap(self._file, _SIZE)
            if self._map[:8] != _MAGIC:
                self._map[:] = bytes(_SIZE)
                self._map[:8] = _MAGIC
        self._reaped = 0.0
        self.level = 0
        """How many places all processes together held when this one took its latest."""
        self._own_row()

    def _own_row(self) -> None:
        for index in range(_ROWS):
            try:
                self._fcntl.lockf(self._file, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB, 1, 1 + index)
            except OSError:
                continue
            self._index = index
            with self._changes():
                _ROW.pack_into(self._map, _ROWS_AT + index * _ROW_SIZE, 0, 0, 0, 0, 0.0)
                self._reap()
                magic, generation, limit, rows, *times = self._header()
                if not any(row.process for row in self._rows()):  # what was found in another run is old news
                    limit, times = 0, [0.0, 0.0]
                _HEADER.pack_into(self._map, 0, magic, generation, limit, max(rows, index + 1), *times)
                self._write()
            return
        raise UsageError(f"more than {_ROWS} processes share these limits: use another name for --share")

    @contextmanager
    def _changes(self) -> Iterator[bool]:
        """Make changes inside; whether one may count on what others wrote, or should come again a little later."""
        if self._process != os.getpid():
            self._begin_again()
        with self._thread_lock:
            locked = self._lock()
            late = self._late
            try:
                yield locked or (late is not None and time.monotonic() - late > _STOPPED)
            finally:
                if locked:
                    self._fcntl.lockf(self._file, self._fcntl.LOCK_UN, 1, 0)

    def _lock(self) -> bool:
        began = time.monotonic()
        while True:
            try:
                self._fcntl.lockf(self._file, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB, 1, 0)
            except OSError:
                if self._late is not None or time.monotonic() - began > _PATIENCE:
                    self._late = began if self._late is None else self._late
                    return False
                time.sleep(_PATIENCE / 50)
            else:
                self._late = None
                return True

    def _begin_again(self) -> None:
        """In a child of a fork: what the parent holds is the parent's, and a thread of it may have the thread lock."""
        self._process = os.getpid()
        self._thread_lock = threading.RLock()
        self._late = None
        self._index = -1
        self._held = self._waiting = self._limit = 0
        with suppress(UsageError):  # too many processes: this one goes uncounted
            self._own_row()

    def _header(self) -> tuple[Any, ...]:
        return _HEADER.unpack_from(self._map)

    def _rows(self) -> list[Row]:
        end = _ROWS_AT + self._header()[3] * _ROW_SIZE
        return [Row(*row) for row in _ROW.iter_unpack(self._map[_ROWS_AT:end])]

    def _write(self) -> None:
        if self._index < 0:
            return
        row = (self._process, self._held, self._waiting, self._limit, time.monotonic())
        _ROW.pack_into(self._map, _ROWS_AT + self._index * _ROW_SIZE, *row)

    def rows(self) -> list[Row]:
        """What all processes say, this one included; the dead are removed first."""
        with self._changes():
            self._reap()
            return [row for row in self._rows() if row.process]

    def bound(self) -> int | None:
        """The smallest limit of the other processes; a look that changes nothing, for screens."""
        others = [row.limit for index, row in enumerate(self._rows()) if row.process and index != self._index]
        return min(filter(None, others), default=None)

    def _reap(self) -> None:
        for index, row in enumerate(self._rows()):
            if index == self._index or not row.process:
                continue
            try:
                self._fcntl.lockf(self._file, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB, 1, 1 + index)
            except OSError:
                continue  # alive
            _ROW.pack_into(self._map, _ROWS_AT + index * _ROW_SIZE, 0, 0, 0, 0, 0.0)
            self._fcntl.lockf(self._file, self._fcntl.LOCK_UN, 1, 1 + index)
        self._reaped = time.monotonic()

    def take(self, limit: int | None, *, static: bool) -> bool:
        """Take a place, if one is free and no other process that waits has fewer.

        Args:
            limit: how many this process thinks there are, in all processes together; ``None`` = any number.
            static: whether ``limit`` binds the others, too.
        """
        with self._changes() as certain:
            self._limit = limit if static and limit else 0
            now = time.monotonic()
            if now - self._reaped > _REAP:
                self._reap()
            others = [row for index, row in enumerate(self._rows()) if row.process and index != self._index]
            room = min([row.limit for row in others if row.limit] + ([limit] if limit else []), default=None)
            held = self._held + sum(row.held for row in others)
            free = room is None or held < room
            hungry = any(row.waiting and row.held < self._held and now - row.seen < _ASLEEP for row in others)
            taken = certain and free and not hungry
            if taken:
                self._held += 1
                self.level = held + 1
            self._write()
            return taken

    def give(self) -> None:
        """Give a place back."""
        with self._changes():
            self._held = max(0, self._held - 1)  # in a child of a fork it may be one that the parent took
            self._write()

    def wait(self, change: int) -> None:
        """Say that so many more (or fewer) wait in this process."""
        with self._changes():
            self._waiting = max(0, self._waiting + change)
            self._write()

    def look(self) -> None:
        """Say that this process is awake."""
        with self._changes():
            self._write()

    def rest(self) -> None:
        """Say that this process has no limit of its own any more, since its run is over."""
        with self._changes():
            self._limit = 0
            self._write()

    @property
    def generation(self) -> int:
        """Goes up with each change of the adaptive limit."""
        return int(self._header()[1])

    @property
    def adaptive(self) -> int:
        """The adaptive limit that holds for all, 0 as long as nobody set one."""
        return int(self._header()[2])

    def publish(self, limit: int) -> int:
        """Make ``limit`` the adaptive limit of all; the new generation."""
        with self._changes():
            generation = (self.generation + 1) % (1 << 32)
            _LIMIT.pack_into(self._map, _LIMIT_AT, generation, limit)
            return generation

    def pay(self, now: float, requests: float, tokens: float) -> float:
        """Take both costs from the budgets that all share, or nothing; see ``Budget.pay``."""
        with self._changes() as certain:
            if not certain:
                return _AGAIN
            budget = Budget(*_NEXT.unpack_from(self._map, _NEXT_AT))
            wait = budget.pay(now, requests, tokens)
            _NEXT.pack_into(self._map, _NEXT_AT, budget.requests, budget.tokens)
            return wait

    def charge(self, now: float, tokens: float) -> None:
        """Take more tokens than were paid for, or give some back."""
        with self._changes():
            budget = Budget(*_NEXT.unpack_from(self._map, _NEXT_AT))
            budget.charge(now, tokens)
            _NEXT.pack_into(self._map, _NEXT_AT, budget.requests, budget.tokens)


_pools: dict[Path, SharedPool] = {}
_pools_lock = threading.Lock()


def _forget_pools() -> None:
    """In a child of a fork: record locks are not inherited, and a thread that is not there may hold the other one."""
    global _pools_lock
    _pools_lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


def check_share_name(name: str) -> None:
    """Refuse what can't be a part of a file's name.

    Raises:
        UsageError: it is none.
    """
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name.startswith("."):
        raise UsageError(f"--share {name!r} is no name: use letters, digits, '-', '_' and '.'")


def shared_pool(name: str, key: str) -> SharedPool:
    """The pool that all processes with ``--share name`` have for ``key``.

    A process opens it once and keeps it: closing one descriptor of a file would drop all its locks.

    Raises:
        UsageError: for a name that is none, or a folder that can't be used.
    """
    check_share_name(name)
    digest = blake2b(f"{name}\0{key}".encode(), digest_size=8).hexdigest()
    path = runtime_dir() / f"share-{name[:60]}-{digest}"
    with _pools_lock:
        pool = _pools.get(path)
        if pool is None:
            pool = _pools[path] = SharedPool(path)
        return pool


class SharedGate(Gate):
    """A gate whose places are shared with other processes; ``held`` and ``waiting`` are this process's own.

    ``poll`` must be called while somebody waits, since another process tells nobody that it gave a place back.
    """

    __slots__ = ("pool", "static")

    def __init__(self, name: str, limit: int | None, pool: SharedPool, *, static: bool = True) -> None:
        self.pool = pool
        self.static = static
        super().__init__(name, limit)

    @property
    def room(self) -> int | None:
        """The smallest limit of all processes that share it."""
        others = self.pool.bound()
        return others if self._limit is None else min(self._limit, others or self._limit)

    def _take(self) -> bool:
        if not self.pool.take(self._limit, static=self.static):
            return False
        self._enter()
        return True

    async def queue(self) -> None:
        """Wait for a place and take it."""
        self.pool.wait(1)
        try:
            await super().queue()
        finally:
            self.pool.wait(-1)

    def release(self) -> None:
        """Give the place back."""
        self.pool.give()
        super().release()

    def poll(self) -> None:
        """Admit who waits if there is room now."""
        if self._waiters:
            self.pool.look()
            self._admit()
