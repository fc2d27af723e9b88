"""Deadlines that hold whatever the code does that they are for: it is cancelled, and then left where it stands."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio

from proctor.concurrency import Detached
from proctor.limits import Permit
from proctor.monitor import activity, awaiting_place

__all__ = ["CLEANUP", "GRACE", "SCORING", "STOP", "StoodStill", "held", "scoring_seconds"]

GRACE = 10.0
"""Seconds that code has to stop after its time is over, before it is left behind."""
STOP = 2.5
"""Seconds that the same code has after Ctrl-C or SIGTERM."""
CLEANUP = 120.0
"""Seconds that a task's cleanup, or that of a sandbox, may take."""
SCORING = 60.0
"""Seconds that the scorers of a sample with a time limit have at least."""

T = TypeVar("T")


class StoodStill(Exception):
    """Work went on after its time was over, and was left where it stood; the text says where."""


def scoring_seconds(time_limit: float | None) -> float | None:
    """How long scorers may take: as long again as the sample had; None without a time limit."""
    return None if time_limit is None else max(SCORING, time_limit)


async def held(
    work: Callable[[], Coroutine[Any, Any, T]],
    overtime: Callable[[], float],
    what: str,
    *,
    after: Callable[[Detached[T]], None] = lambda task: None,
) -> T:
    """Run ``work``, which is to end by itself when its time is over, in a task that can be left behind.

    Args:
        work: makes the coroutine.
        overtime: seconds since its time was over; negative, those that it has left at least.
        what: it is called in the error.
        after: called when it is over, with the task and its context variables.

    Raises:
        StoodStill: it did not end.
        BaseException: what ``work`` raised.
    """
    permit = Permit()

    async def permitted() -> T:
        with permit:
            return await work()

    task = Detached(permitted)
    doer = activity()
    before = None if doer is None else doer.coroutine
    if doer is not None:
        doer.coroutine = task.coroutine  # where a person looks for what the sample waits for
    try:
        while not await task.wait(max(0.01, GRACE - overtime())):
            if overtime() >= GRACE:
                place = awaiting_place(task.coroutine)
                task.abandon()
                where = f", in {place}" if place is not None else ""
                raise StoodStill(f"the {what} did not stop within {GRACE:g} s{where}: it was left behind")
    except anyio.get_cancelled_exc_class():
        await task.stop(STOP * 0.8)  # whoever waits for this one has STOP seconds of patience
        raise
    finally:
        if task.abandoned:
            permit.revoke(f"the {what} was left behind")
        if doer is not None:
            doer.coroutine = before
        after(task)
    return _outcome(task, what)


def _outcome(task: Detached[T], what: str) -> T:
    if isinstance(task.failed, anyio.get_cancelled_exc_class()):
        # Nobody has cancelled it. Raised here, it would pass for the end of the run.
        raise RuntimeError(f"the {what} ended with a cancellation of its own making")
    return task.result()
