"""A provider, a gate and samples on a virtual clock: minutes of an adaptive limit in milliseconds."""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from proctor.concurrency import (
    AdaptiveController,
    AdaptiveLimits,
    RequestPacer,
    Turn,
)
from proctor.contracts import RateLimits

NETWORK = 0.005  # seconds there and back
HANDLING = 0.0003  # seconds of the client's one processor per answer
TICK = 0.01  # how often somebody looks for slots that fall due


@dataclass
class Server:
    """What is hidden from the client.

    Attributes:
        capacity: requests at once, by the time; None = any number.
        latency: seconds that one request takes.
        hint: seconds that a refusal asks to wait, or None.
        bucket: requests a minute and tokens a minute, filled continuously, a sixth of a minute deep.
        tells: whether answers say how much of the bucket is left.
    """

    capacity: Callable[[float], int] | None = None
    latency: Callable[[], float] = lambda: 1.0
    hint: float | None = 1.0
    bucket: tuple[float, float] | None = None
    tells: bool = False
    inside: int = 0
    left: list[float] = field(default_factory=lambda: [math.inf, math.inf])
    filled: float = 0.0

    def admit(self, now: float, tokens: int) -> bool:
        self.fill(now)
        if self.capacity is not None and self.inside >= self.capacity(now):
            return False
        if self.left[0] < 1 or self.left[1] < tokens:
            return False
        self.left[0] -= 1
        self.left[1] -= tokens
        self.inside += 1
        return True

    def fill(self, now: float) -> None:
        if self.bucket is not None:
            for at, rate in enumerate(self.bucket):
                self.left[at] = min(rate / 6, self.left[at] + (now - self.filled) * rate / 60)
        self.filled = now

    def quota(self, now: float) -> RateLimits | None:
        if self.bucket is None or not self.tells:
            return None
        self.fill(now)
        (requests, tokens), (left, left_tokens) = self.bucket, self.left
        return RateLimits(
            requests_limit=int(requests / 6),
            requests_remaining=int(left),
            requests_reset=(requests / 6 - left) / requests * 60,
            tokens_limit=int(tokens / 6),
            tokens_remaining=int(left_tokens),
            tokens_reset=(tokens / 6 - left_tokens) / tokens * 60,
        )


@dataclass
class Outcome:
    """Seconds until the last sample was done, refusals, and the limit at each change."""

    wall: float = 0.0
    refusals: int = 0
    trace: list[tuple[float, int]] = field(default_factory=list)

    def settled(self, capacity: int, since: float = 0.0) -> float:
        """Seconds from ``since`` until the limit was first within 10% (at least 1) of ``capacity``."""
        allowed = max(1.0, 0.1 * capacity)
        before = [limit for time, limit in self.trace if time <= since]
        later = [(time, limit) for time, limit in self.trace if time > since]
        for time, limit in [(since, before[-1])] * bool(before) + later:
            if abs(limit - capacity) <= allowed:
                return time - since
        return math.inf


@dataclass
class Sample:
    tokens: int
    attempt: int = 0
    token: tuple[int, float, int] = (0, 0.0, 0)


class World:
    """Runs samples through a controller (or, given a number, a fixed limit) against a server."""

    def __init__(self, server: Server, limits: AdaptiveLimits | int, *, seed: int = 1) -> None:
        self.now = 0.0
        self.server = server
        self.random = random.Random(seed)
        self.outcome = Outcome()
        self.fixed = limits if isinstance(limits, int) else None
        bounds = AdaptiveLimits(1, limits, limits) if isinstance(limits, int) else limits
        self.controller = AdaptiveController(bounds, now=self.clock, on_change=lambda change: self._note(change.new))
        self.pacer = RequestPacer(now=self.clock)
        self._note(bounds.start)
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0
        self.busy = 0.0
        self.held = 0
        self.ticking = False
        self.queue: deque[Sample] = deque()

    def clock(self) -> float:
        return self.now

    def _note(self, limit: int) -> None:
        self.outcome.trace.append((self.now, limit))

    def at(self, time: float, what: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (time, self.count, what))

    def run(self, samples: int, tokens: Callable[[], int] = lambda: 0) -> Outcome:
        self.queue.extend(Sample(tokens()) for _ in range(samples))
        self.todo = samples
        self._admit()
        while self.todo:
            self.now, _, what = heapq.heappop(self.events)
            what()
        self.outcome.wall = self.now
        return self.outcome

    def _admit(self) -> None:
        self.controller.tend()
        limit = self.controller.limit if self.fixed is None else self.fixed
        while self.queue and self.held < limit:
            self.held += 1
            sample = self.queue.popleft()
            self._turn(sample, self.pacer.book())
        if not self.ticking and self.controller.due() is not None:
            self.ticking = True
            self.at(self.now + TICK, self._tick)

    def _turn(self, sample: Sample, turn: Turn | None) -> None:
        wait = max(self.controller.hold(), self.pacer.wait(turn) if turn else 0.0)
        if wait > 0:
            self.at(self.now + wait, lambda: self._turn(sample, turn))
        else:
            self._leave(sample)

    def _tick(self) -> None:
        self.ticking = False
        self._admit()

    def _leave(self, sample: Sample) -> None:
        sample.attempt += 1
        sample.token = self.controller.sent()
        self.at(self.now + NETWORK / 2, lambda: self._arrive(sample))

    def _arrive(self, sample: Sample) -> None:
        if self.server.admit(self.now, sample.tokens):
            self.at(self.now + self.server.latency(), lambda: self._depart(sample))
        else:
            quota = self.server.quota(self.now)
            self.at(self.now + NETWORK / 2, lambda: self._handle(lambda: self._refused(sample, quota)))

    def _depart(self, sample: Sample) -> None:
        self.server.inside -= 1
        quota = self.server.quota(self.now)
        self.at(self.now + NETWORK / 2, lambda: self._handle(lambda: self._answered(sample, quota)))

    def _handle(self, what: Callable[[], None]) -> None:
        self.busy = max(self.busy, self.now) + HANDLING
        self.at(self.busy, what)

    def _answered(self, sample: Sample, quota: RateLimits | None) -> None:
        self.pacer.heard(quota)
        self.pacer.settle(sample.tokens)
        if sample.attempt == 1:
            self.controller.succeeded(sample.token)
        else:
            self.controller.repeated(sample.token)
        self.todo -= 1
        self.held -= 1
        self._admit()

    def _refused(self, sample: Sample, quota: RateLimits | None) -> None:
        self.outcome.refusals += 1
        hint = self.server.hint
        self.pacer.heard(quota)
        self.pacer.settle(0)
        self.controller.refused(sample.token, hint)
        # As the core's retries: full jitter below a doubled second, or the hint when that is longer.
        wait = self.random.random() * min(60.0, 2.0 ** (sample.attempt - 1))
        if hint is not None:
            wait = max(wait, min(hint, 300.0))
        self.at(self.now + wait, lambda: self._again(sample))
        self.held -= 1
        self._admit()

    def _again(self, sample: Sample) -> None:
        self.queue.append(sample)
        self._admit()
