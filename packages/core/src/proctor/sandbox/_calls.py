"""What is under way in the sandboxes of a sample: places at the gate of commands, and work that does not answer."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

from proctor.concurrency import Detached, Gate
from proctor.contracts import SandboxBrokenError
from proctor.limits import sample_limits

__all__ = ["OVERDUE", "Calls", "answered", "at_gate"]

T = TypeVar("T")

OVERDUE = 30.0
"""Seconds after its timeout in which a sandbox has to answer: it kills the command and reads what it wrote."""
STOPPING = 5.0
"""Seconds that cancelled work has to stop, before it is left behind."""


class Calls:
    """The calls of one sample. What a solver that was left behind holds and runs is given back by ``end``.

    Args:
        execs: the gate of the provider's commands; ``None`` = they are not limited.
    """

    def __init__(self, execs: Gate | None) -> None:
        self._execs = execs
        self._held: set[object] = set()
        self._tasks: set[Detached[Any]] = set()
        self.broken: SandboxBrokenError | None = None
        """The first that one of them raised."""

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place for a command inside."""
        if self._execs is None:
            yield
            return
        await at_gate(self._execs)
        mine = object()
        self._held.add(mine)
        try:
            yield
        finally:
            if mine in self._held:
                self._held.discard(mine)
                self._execs.release()

    async def within(self, work: Callable[[], Coroutine[Any, Any, T]], timeout: float | None, what: str) -> T:
        """Await ``work``, which ends by itself after ``timeout`` seconds and what killing a command takes.

        Raises:
            SandboxBrokenError: it did not.
        """
        if timeout is None:
            return await work()
        late = f"the sandbox did not end {what!r:.200} within {OVERDUE:g} s after its timeout of {timeout:g} s"
        return await answered(work, timeout + OVERDUE, late, self._tasks)

    def end(self) -> None:
        """Let go of what still stands: whoever began it was left behind."""
        if self._execs is not None:
            for _ in self._held:
                self._execs.release()
        self._held.clear()
        for task in list(self._tasks):
            task.abandon()
        self._tasks.clear()


async def answered(
    work: Callable[[], Coroutine[Any, Any, T]],
    seconds: float,
    late: str,
    among: set[Detached[Any]] | None = None,
) -> T:
    """Await ``work`` for so long and no longer, whatever it does.

    Args:
        work: makes the coroutine.
        seconds: after which it is cancelled, and left where it stands if it does not stop.
        late: what the error says then.
        among: has the task as long as somebody may have to abandon it.

    Raises:
        SandboxBrokenError: it did not end in time.
        Exception: what it raised.
    """
    task = Detached(work)
    tasks = set() if among is None else among
    tasks.add(task)
    try:
        ended = await task.wait(seconds)
        if not ended:
            await task.stop(STOPPING)
            raise SandboxBrokenError(late)
    except anyio.get_cancelled_exc_class():
        await task.stop(STOPPING)
        raise
    finally:
        tasks.discard(task)
    if isinstance(task.failed, anyio.get_cancelled_exc_class()):
        # Nobody has cancelled it. Raised here, it would pass for the end of the sample.
        raise SandboxBrokenError("the sandbox cancelled the call by itself")
    return task.result()


async def at_gate(gate: Gate) -> None:
    """Take a place; the working clock of the sample stands still until there is one."""
    if gate.try_acquire():
        return
    limits = sample_limits()
    with contextlib.nullcontext() if limits is None else limits.pause():
        await gate.acquire()
