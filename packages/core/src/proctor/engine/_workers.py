"""The workers of a unit: as many as its connections can keep busy, now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context

import anyio
from anyio.abc import TaskGroup

from proctor.engine._progress import UnitProgress

__all__ = ["Workers"]


class Workers:
    """Runs as many copies of ``work`` as samples may run at once, while that number moves.

    ``work`` returns when there is nothing left to do; before each sample it asks ``surplus`` whether it should rather
    stop, since the number has fallen.
    """

    def __init__(self, progress: UnitProgress, work: Callable[[], Awaitable[None]]) -> None:
        self._unit = progress.unit
        self._progress = progress
        self._work = work
        self._live = 0
        self._done = False
        self._tasks: TaskGroup | None = None
        # Whoever tells that there is room does so from inside some sample: its context is not for new workers.
        self._context = copy_context()

    async def run(self) -> None:
        """Return when all work is done."""
        unsubscribe = self._unit.connections.subscribe(self._fill)
        self._progress.on_samples(self.allowed, self._fill)
        try:
            async with anyio.create_task_group() as self._tasks:
                self._fill()
        finally:
            unsubscribe()

    def allowed(self) -> int:
        """How many samples may run now."""
        unit = self._unit
        number = self._progress.max_samples
        if number is None:
            shared = unit.connections
            own = None if shared.by_hand else unit.config.max_connections
            # A task's own number below the limit that others made for the same credential is still its number.
            below = own is not None and shared.gate.limit is not None and own < shared.gate.limit
            number = own if own is not None and below else shared.samples()
        return number if unit.total is None else min(number, unit.total)

    def surplus(self) -> bool:
        """Whether the worker that asks is one too many; it must return then."""
        return self._live > self.allowed()

    def _fill(self) -> None:
        if self._tasks is None or self._done:
            return
        for _ in range(self.allowed() - self._live):
            self._live += 1
            self._context.run(self._tasks.start_soon, self._one)

    async def _one(self) -> None:
        surplus = False
        try:
            await self._work()
            surplus = self.surplus()
        finally:
            self._live -= 1
            self._done = self._done or not surplus
