"""Whether an event loop turns while something runs: told by the turns of a thread beside it, not by a clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskStatus

__all__ = ["STOPPED", "longest_stop"]

STOPPED = 10
"""Turns of the thread beside an event loop, of 10 ms, in which that turned not once: something blocks it."""


async def longest_stop(function: Callable[..., Awaitable[Any]], *args: Any) -> int:
    """How often, while ``function`` runs, a thread turned for one turn of the event loop, at the most.

    The thread sleeps for 10 ms a turn. A machine that is slow slows both.
    """
    beside, done, longest = 0, threading.Event(), 0

    def turn_beside() -> None:
        nonlocal beside
        while not done.is_set():
            time.sleep(0.01)
            beside += 1

    async def turn(*, task_status: TaskStatus[None]) -> None:
        nonlocal longest
        before = beside
        task_status.started()
        while True:
            await anyio.sleep(0.001)
            longest, before = max(longest, beside - before), beside

    thread = threading.Thread(target=turn_beside, daemon=True)
    thread.start()
    try:
        async with anyio.create_task_group() as group:
            await group.start(turn)
            await function(*args)
            await anyio.sleep(0.002)  # so that the turn that was held up is counted
            group.cancel_scope.cancel()
    finally:
        done.set()
    return longest
