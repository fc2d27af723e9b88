from __future__ import annotations

from collections import OrderedDict
from types import TracebackType

import anyio

from proctor.monitor import doing

__all__ = ["Gate"]


class Gate:
    """A named, adjustable limit: at most ``limit`` holders at once, first come first served.

    ``limit`` may be changed while the gate is in use; lowering it never disturbs those inside. ``None`` = no limit.
    A gate belongs to one event loop. Passing a free gate costs no trip through the loop.
    """

    __slots__ = ("_held", "_limit", "_waiters", "name", "peak")

    def __init__(self, name: str, limit: int | None) -> None:
        self.name = name
        self.peak = 0
        self._held = 0
        self._waiters: OrderedDict[anyio.Event, None] = OrderedDict()
        self._limit: int | None = None
        self.limit = limit

    @property
    def limit(self) -> int | None:
        """How many may hold the gate at once."""
        return self._limit

    @limit.setter
    def limit(self, limit: int | None) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"the limit of gate {self.name!r} must be at least 1, not {limit}")
        self._limit = limit
        self._admit()

    @property
    def room(self) -> int | None:
        """How many may hold it as things are: a gate that is shared may be bound by another's limit."""
        return self._limit

    @property
    def held(self) -> int:
        """How many hold the gate now."""
        return self._held

    @property
    def waiting(self) -> int:
        """How many wait for it now."""
        return len(self._waiters)

    def try_acquire(self) -> bool:
        """Take a place if one is free and nobody waits for it."""
        return not self._waiters and self._take()

    async def acquire(self) -> None:
        """Take a place, waiting for one if need be."""
        if not self.try_acquire():
            with doing("gate", self.name):
                await self.queue()

    async def queue(self) -> None:
        """Wait for a place and take it, right after ``try_acquire`` found none: callers say what they wait for."""
        place = anyio.Event()
        self._waiters[place] = None
        try:
            await place.wait()
        except BaseException:
            if place.is_set():  # the place was handed over in the instant of the cancellation
                self.release()
            else:
                del self._waiters[place]
            raise

    def release(self) -> None:
        """Give the place back."""
        self._held -= 1
        if self._waiters:
            self._admit()

    def _take(self) -> bool:
        if self._limit is not None and self._held >= self._limit:
            return False
        self._enter()
        return True

    def _enter(self) -> None:
        self._held += 1
        if self._held > self.peak:
            self.peak = self._held

    def _admit(self) -> None:
        while self._waiters and self._take():
            place, _ = self._waiters.popitem(last=False)
            place.set()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        limit = "no limit" if self._limit is None else self._limit
        return f"<Gate {self.name}: {self._held} of {limit}, {self.waiting} waiting>"
