"""A provider that takes so many requests at once, and a client with endless work for it, on a clock of their own."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from proctor.concurrency import (
    AdaptiveController,
    AdaptiveLimits,
    LimitChange,
    Token,
)

BACK = 0.004  # seconds after which a refusal is back
LOOK = 0.01  # seconds between looks for slots that fall due


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class VirtualProvider:
    """Answers after ``latency`` seconds what it has room for, and refuses the rest at once.

    A refused request is sent again after ``hint`` seconds. Answers to such count as repeated.
    """

    def __init__(
        self, limits: AdaptiveLimits, *, capacity: int, latency: float = 1.0, hint: float | None = None
    ) -> None:
        self.clock = Clock()
        self.controller = AdaptiveController(limits, now=self.clock, on_change=self._changed)
        self.cuts: list[float] = []
        """When the limit was cut; what goes on with a cut counts as a part of it."""
        self.capacity = capacity
        self.hint = hint
        self.refusals = 0
        self._latency = latency
        self._inside = self._held = self._again = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._at(0.0, self._look)

    def _changed(self, change: LimitChange) -> None:
        if change.reason == "rate_limit" and not change.more:
            self.cuts.append(self.clock.now)

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.clock.now + seconds
        while self._events[0][0] <= end:
            self.clock.now, _, happen = heapq.heappop(self._events)
            happen()
        self.clock.now = end

    def _at(self, seconds: float, happen: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.clock.now + seconds, self._count, happen))

    def _look(self) -> None:
        self._send()
        self._at(LOOK, self._look)

    def _send(self) -> None:
        self.controller.tend()
        while self._held < self.controller.limit and not self.controller.hold():
            self._held += 1
            first = not self._again
            self._again -= not first
            token = self.controller.sent()
            if self._inside < self.capacity:
                self._inside += 1
                self._at(self._latency, lambda token=token, first=first: self._answer(token, first))  # type: ignore[misc]
            else:
                self._at(BACK, lambda token=token: self._refuse(token))  # type: ignore[misc]

    def _answer(self, token: Token, first: bool) -> None:
        self._inside -= 1
        if first:
            self.controller.succeeded(token)
        else:
            self.controller.repeated(token)
        self._held -= 1
        self._send()

    def _refuse(self, token: Token) -> None:
        self.refusals += 1
        self.controller.refused(token, self.hint)
        self._at(1.0 if self.hint is None else self.hint, self._retry)
        self._held -= 1
        self._send()

    def _retry(self) -> None:
        self._again += 1
