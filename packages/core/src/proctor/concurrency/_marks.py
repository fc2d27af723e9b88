"""Processes found by a mark in their environment, which children inherit: also those that left their process group.

Linux tells the environment of a process (proc(5), ``environ``). Only what has wiped its environment *and* outlived
its parents can't be found so; elsewhere nothing is found, and process groups alone are killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping

import anyio
from anyio import CapacityLimiter, to_thread

__all__ = ["kill_descendants", "kill_marked", "marked_environment", "marked_processes", "process_environment"]

_VARIABLE = "PROCTOR_COMMAND"
_PROC = "/proc"
_PATIENCE = 2.0  # seconds in which what was killed has to be gone
_PAUSE = 0.005
_GLANCE = 0.001


def marked_environment(env: Mapping[str, str] | None, *marks: str) -> dict[str, str]:
    """This process's environment with ``env`` and ``marks`` added to it; marks of a run around this one are kept."""
    own = " ".join(mark for mark in (os.environ.get(_VARIABLE, ""), *marks) if mark)
    return {**os.environ, _VARIABLE: own, **(env or {})}


def marked_processes(mark: str) -> list[int]:
    """The processes of this user that have ``mark``, which are not this one.

    Blocks for some milliseconds, and up to 2 s where processes are just beginning a program.
    """
    wanted, me, until = mark.encode(), os.getpid(), time.monotonic() + _PATIENCE
    return [pid for pid in _processes() if pid != me and wanted in _marks(pid, until)]


async def kill_marked(mark: str) -> None:
    """Kill all processes that have ``mark``, and return when they are gone."""
    with anyio.CancelScope(shield=True):
        # A limiter of its own: threads that hang must not keep anything from being killed.
        await to_thread.run_sync(_kill_marked, mark, limiter=CapacityLimiter(1))


async def kill_descendants(pid: int) -> None:
    """Kill the descendants of a process, as far as their parents live; not the process itself."""
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(_kill_descendants, pid, limiter=CapacityLimiter(1))


def _kill_marked(mark: str) -> None:
    until = time.monotonic() + _PATIENCE
    dying: set[int] = set()
    while found := {*marked_processes(mark), *(pid for pid in dying if not _ended(pid))}:
        for pid in found:
            _kill(pid, mark)
        dying |= found
        if time.monotonic() > until:
            return
        time.sleep(_PAUSE)


def _kill(pid: int, mark: str) -> None:
    """Kill exactly that process: another may be given its number between the look and the signal."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if mark.encode() in _marks(pid, time.monotonic() + _PATIENCE):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie: one that dies has no memory, so no mark, for a while before that."""
    try:
        return _stat(pid)[0] in (b"Z", b"X")
    except OSError:
        return True


def _processes() -> Iterator[int]:
    with contextlib.suppress(OSError):
        for name in os.listdir(_PROC):
            if name.isdecimal():
                yield int(name)


def _marks(pid: int, until: float) -> list[bytes]:
    """Those of a process; none for one of another user, or one that has ended."""
    name = _VARIABLE.encode() + b"="
    try:
        environment = process_environment(pid, until)
    except OSError:
        return []
    if name not in environment:
        return []
    return next((line[len(name) :].split() for line in environment.split(b"\0") if line.startswith(name)), [])


def process_environment(pid: int, until: float) -> bytes:
    """What stands in the environment of a process of this user, as proc(5) has it: ``NAME=value``, each with a NUL.

    In the middle of execve(2) none is told yet; that is waited for, with this thread. It lasts until the process gets a
    processor again: some milliseconds on a machine with much to do.

    Args:
        pid: its number.
        until: the time, by ``time.monotonic``, after which it is not waited for any more.

    Raises:
        OSError: it has ended, or is another user's.
    """
    while True:
        with open(f"{_PROC}/{pid}/environ", "rb", buffering=0) as file:
            environment = file.read()
        if environment or time.monotonic() > until:
            return environment
        # proc(5), from the third field on: what has no memory (23: vsize) has ended or is the kernel's; where the
        # environment ends (51: env_end) is zero until a new program has it.
        told = _stat(pid)
        if told[20] == b"0" or (told[48] != b"0" and told[47] == told[48]):
            return b""
        time.sleep(_GLANCE)


def _stat(pid: int) -> list[bytes]:
    """The fields of a process's ``stat`` from its state on; its name, in parentheses before that, may be any text."""
    with open(f"{_PROC}/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def _kill_descendants(pid: int) -> None:
    for each in _descendants(pid):
        with contextlib.suppress(OSError):
            os.kill(each, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for each in _processes():
        with contextlib.suppress(OSError):
            children.setdefault(int(_stat(each)[1]), []).append(each)
    found, new = [], [pid]
    while new:
        new = [child for parent in new for child in children.pop(parent, ())]
        found += new
    return found
