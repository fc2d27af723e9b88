"""The workers of a unit: as many as its connections can keep busy, now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context

import anyio

from proctor.concurrency import Detached
from proctor.engine._deadline import STOP
from proctor.engine._progress import UnitProgress

__all__ = ["Workers"]


class Workers:
    """Runs as many copies of ``work`` as samples may run at once, while that number moves.

    ``work`` returns when there is nothing left to do; before each sample it asks ``surplus`` whether it should rather
    stop, since the number has fallen.
    """

    def __init__(self, progress: UnitProgress, work: Callable[[], Awaitable[None]]) -> None:
        self._unit = unit = progress.unit
        # A task's own number, which no later setting of the model changes.
        self._own = unit.config.max_connections
        self._progress = progress
        self._work = work
        self._live = 0
        self._done = False
        self._tasks: dict[Detached[None], None] = {}
        self._begun = False
        self._idle = anyio.Event()
        self._failed: BaseException | None = None
        # Whoever tells that there is room does so from inside some sample: its context is not for new workers.
        self._context = copy_context()

    async def run(self) -> None:
        """Return when all work is done; when this is cancelled, what doesn't stop is left behind."""
        unsubscribe = self._unit.connections.subscribe(self._fill)
        self._progress.on_samples(self.allowed, self._fill)
        try:
            self._begun = True
            self._fill()
            await self._idle.wait()
        finally:
            self._done = True
            unsubscribe()
            if self._tasks:
                await self._stop()
        if self._failed is not None:
            raise self._failed

    async def _stop(self) -> None:
        """Cancel all workers at once, and wait for those that do stop."""
        workers = list(self._tasks)
        for each in workers:
            each.scope.cancel()
        with anyio.move_on_after(STOP, shield=True):
            for each in workers:
                await each.done.wait()
        for each in workers:
            each.abandon()

    def allowed(self) -> int:
        """How many samples may run now."""
        unit = self._unit
        number = self._progress.max_samples
        if number is None:
            shared, own = unit.connections, self._own
            # A task's own number below the limit that others made for the same credential is still its number.
            if own is not None and not shared.by_hand and (limit := shared.gate.limit) is not None and own < limit:
                number = own
            else:
                number = shared.samples()
        # One at least, also for a dataset that says it is empty: the worker who finds nothing is what ends the unit.
        return number if unit.total is None else min(number, max(1, unit.total))

    @property
    def live(self) -> int:
        """How many workers there are."""
        return self._live

    def surplus(self) -> bool:
        """Whether the worker that asks is one too many; it must return then."""
        return self._live > self.allowed()

    def _fill(self) -> None:
        if not self._begun or self._done:
            return
        for _ in range(self.allowed() - self._live):
            self._live += 1
            worker = self._context.run(Detached, self._one)
            self._tasks[worker] = None
            worker.on_end(self._ended)

    async def _one(self) -> None:
        surplus = False
        try:
            await self._work()
            surplus = self.surplus()
        finally:
            self._live -= 1
            self._done = self._done or not surplus

    def _ended(self, worker: Detached[None]) -> None:
        self._tasks.pop(worker, None)
        error = worker.failed
        if error is not None and not isinstance(error, anyio.get_cancelled_exc_class()):
            self._failed = self._failed or error
            self._idle.set()  # the others are stopped
        if not self._tasks:
            self._idle.set()
