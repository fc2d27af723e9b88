"""Work in threads that can be told to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, get_cancelled_exc_class, to_thread

from proctor_sandbox_k8s._cluster import CALLS
from proctor_sandbox_k8s._wake import Stop, Stopped, waker

__all__ = ["Threads"]

T = TypeVar("T")

_STREAMS = 1024
_ENDING = 10.0  # seconds in which work that is cancelled may come to an end; after that it does so unseen


class Threads:
    """The threads of one driver: for requests, and for commands, which may take long and never keep a request waiting.

    How many commands run at once is for the run's gates to say, not for a number of threads.
    """

    def __init__(self) -> None:
        self._calls = CapacityLimiter(CALLS)
        self._streams = CapacityLimiter(_STREAMS)

    async def call(self, work: Callable[[], T]) -> T:
        """Make requests that nobody needs to know of when this is cancelled."""
        return await to_thread.run_sync(work, limiter=self._calls, abandon_on_cancel=True)

    async def make(self, work: Callable[[Stop], T]) -> T:
        """Make requests that must not be left half done: ``work`` looks whether it is to end."""
        return await _in_thread(work, self._calls)

    async def stream(self, work: Callable[[Stop], T]) -> T:
        """Run a command."""
        return await _in_thread(work, self._streams)


async def _in_thread(work: Callable[[Stop], T], limiter: CapacityLimiter) -> T:
    stop, began = Stop(), False
    finished, wake = waker()

    def body() -> T:
        nonlocal began
        began = True
        try:
            if stop.asked:
                raise Stopped
            return work(stop)
        finally:
            stop.close()
            wake()

    try:
        return await to_thread.run_sync(body, limiter=limiter, abandon_on_cancel=True)
    except get_cancelled_exc_class():
        stop.set()
        if began:
            with anyio.move_on_after(_ENDING, shield=True):
                await finished.wait()
        raise
