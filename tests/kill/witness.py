"""A plugin of the kill tests, in the process that they kill.

It writes the key of every acknowledged sample to a file, and kills its own process group at the moment that
``KILL_AT`` names (``KIND:COUNT:SHARE``): inside of a write, between a write and its sync, and so on.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from proctor.contracts import Observer, ObserverProvider
from proctor.hookspecs import hookimpl

LOGS = (".eval", ".json")


class Moment:
    """When to die: at the ``count``-th thing of a kind, ``share`` of which is done before."""

    def __init__(self, text: str) -> None:
        kind, count, share = text.split(":")
        self.kind, self.left, self.share = kind, int(count), float(share)

    def now(self, kind: str, last: bool = False) -> bool:
        """Whether this is it. What never came to its count happens at the last write: every run is killed."""
        self.left -= kind == self.kind
        return (kind == self.kind and self.left == 0) or (last and self.kind not in ("never", "memory"))


def die() -> None:
    """What ``kill -9`` of the process group does, at this instruction."""
    os.killpg(0, signal.SIGKILL)


def arm(at: Moment) -> None:
    """Put the moment into the calls by which logs are written."""
    write, sync, replace, open = os.pwritev, os.fdatasync, os.replace, os.open

    def pwritev(handle: int, buffers: Any, offset: int, *rest: Any) -> int:
        data = b"".join(buffers)
        if at.now("write", last=b"header.json" in data):
            write(handle, [data[: int(len(data) * at.share)]], offset)
            die()
        done = write(handle, buffers, offset, *rest)
        if at.now("written"):
            die()
        return done

    def fdatasync(handle: int) -> None:
        sync(handle)
        if at.now("synced"):
            die()

    def renamed(source: Any, target: Any, **options: Any) -> None:
        last = str(target).endswith(LOGS)
        if last and at.share < 0.5 and at.now("replace", last):
            die()
        replace(source, target, **options)
        if last and at.now("replace", last):
            die()

    def opened(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        handle = open(path, flags, *rest, **options)
        if flags & os.O_EXCL and str(path).endswith(LOGS) and at.now("created"):
            die()
        return handle

    patches: dict[str, Callable[..., Any]] = {
        "pwritev": pwritev,
        "fdatasync": fdatasync,
        "replace": renamed,
        "open": opened,
    }
    for name, patch in patches.items():
        setattr(os, name, patch)


class Witness(Observer):
    """Says outside which samples were acknowledged."""

    def __init__(self, at: Moment) -> None:
        self._at = at
        self._file = os.open(os.environ["KILL_ACKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def sample_end(self, event: Any) -> None:
        """One line a sample, in one write."""
        os.write(self._file, f"{event.summary.id} {event.summary.epoch}\n".encode())
        if self._at.now("told"):
            die()
        if self._at.now("memory"):
            self._eaten = starve()


def starve() -> list[bytes]:
    """Take all the memory that this process has, and let it get no more."""
    with open("/proc/self/statm") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used, used))
    eaten: list[bytes] = []
    for size in (1 << 20, 1 << 12, 1 << 8):
        with suppress(MemoryError):
            while True:
                eaten.append(bytes(size))
    return eaten


def witness(args: None) -> Observer:
    """Made before the run opens its first log."""
    at = Moment(os.environ.get("KILL_AT", "never:0:0"))
    if sys.platform == "linux":
        arm(at)
    return Witness(at)


@hookimpl
def proctor_observers() -> list[ObserverProvider]:
    return [ObserverProvider(name="witness", factory=witness, args=None)]
