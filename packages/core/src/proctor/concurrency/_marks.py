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

__all__ = ["kill_descendants", "kill_marked", "marked_environment", "marked_processes"]

_VARIABLE = "PROCTOR_COMMAND"
_PROC = "/proc"
_PATIENCE = 2.0  # seconds in which what was killed has to be gone
_PAUSE = 0.005


def marked_environment(env: Mapping[str, str] | None, *marks: str) -> dict[str, str]:
    """This process's environment with ``env`` and ``marks`` added to it; marks of a run around this one are kept."""
    own = " ".join(mark for mark in (os.environ.get(_VARIABLE, ""), *marks) if mark)
    return {**os.environ, _VARIABLE: own, **(env or {})}


def marked_processes(mark: str) -> list[int]:
    """The processes of this user that have ``mark``, which are not this one; blocks for some milliseconds."""
    wanted, me = mark.encode(), os.getpid()
    return [pid for pid in _processes() if pid != me and wanted in _marks(pid)]


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
    while found := marked_processes(mark):
        for pid in found:
            _kill(pid, mark)
        if time.monotonic() > until:
            return
        time.sleep(_PAUSE)


def _kill(pid: int, mark: str) -> None:
    """Kill exactly that process: another may be given its number between the look and the signal."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if mark.encode() in _marks(pid):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _processes() -> Iterator[int]:
    with contextlib.suppress(OSError):
        for name in os.listdir(_PROC):
            if name.isdecimal():
                yield int(name)


def _marks(pid: int) -> list[bytes]:
    """Those of a process; none for one of another user, or one that has ended."""
    name = _VARIABLE.encode() + b"="
    try:
        with open(f"{_PROC}/{pid}/environ", "rb", buffering=0) as file:
            environment = file.read()
    except OSError:
        return []
    if name not in environment:
        return []
    return next((line[len(name) :].split() for line in environment.split(b"\0") if line.startswith(name)), [])


def _kill_descendants(pid: int) -> None:
    for each in _descendants(pid):
        with contextlib.suppress(OSError):
            os.kill(each, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for each in _processes():
        with contextlib.suppress(OSError, IndexError, ValueError), open(f"{_PROC}/{each}/stat", "rb") as file:
            # proc(5): the name in parentheses may have any character; state and parent follow it.
            children.setdefault(int(file.read().rpartition(b")")[2].split()[1]), []).append(each)
    found, new = [], [pid]
    while new:
        new = [child for parent in new for child in children.pop(parent, ())]
        found += new
    return found
