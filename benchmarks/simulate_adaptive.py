"""Adaptive connections against made-up providers, on a virtual clock: seconds, refusals, and when the limit is right.

Ideal = what a client would need that knows the capacity at every moment. All runs are the same every time.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from adaptive_world import Outcome, Server, World
from bench_support import Figure, at_most, main, reference

from proctor.concurrency import AdaptiveLimits

LIMITS = AdaptiveLimits(1, 20, 1000)  # the capacity is never told by the maximum
HINTS = {"1 s": 1.0, "none": None, "60 s": 60.0}


def _adapt(server: Server, samples: int, limits: AdaptiveLimits | int = LIMITS) -> Outcome:
    return World(server, limits).run(samples)


def _always(number: int) -> Callable[[float], int]:
    return lambda _: number


def _ideal(capacity: Callable[[float], int], samples: int) -> float:
    """Seconds for ``samples`` requests of 1 s with all of the capacity in use all the time."""
    step = 0.01
    done = itertools.accumulate(capacity(index * step) * step for index in range(1_000_000))
    return next(index for index, answers in enumerate(done, 1) if answers >= samples) * step


def _constant() -> list[Figure]:
    figures = []
    hidden = _adapt(Server(capacity=_always(40)), 1200, AdaptiveLimits())
    figures.append(at_most("adaptive: 1,200 samples, capacity 40 (ideal 30 s)", hidden.wall, "s", 31.5))
    figures.append(at_most("adaptive: 1,200 samples, capacity 40, refusals", hidden.refusals, "", 19))
    for capacity, allowed in ((5, 1.05), (40, 1.05), (400, 1.08)):
        samples = 60 * capacity
        outcome = _adapt(Server(capacity=_always(capacity)), samples)
        static = _adapt(Server(capacity=_always(capacity)), samples, capacity)
        figures += [
            at_most(f"adaptive: capacity {capacity} / best static", outcome.wall / static.wall, "x", allowed),
            reference(f"adaptive: capacity {capacity}, refusals", outcome.refusals, ""),
            at_most(f"adaptive: capacity {capacity} found after", outcome.settled(capacity), "s", 6),
        ]
    return figures


def _stepped() -> list[Figure]:
    """40 for 20 s, 10 for 20 s, then 80. A sample that is told to wait 60 s makes any run as long, so no wall there."""

    def capacity(now: float) -> int:
        return 40 if now < 20 else 10 if now < 40 else 80

    samples = 4000
    ideal = _ideal(capacity, samples)
    figures = []
    for name, hint in HINTS.items():
        outcome = _adapt(Server(capacity=capacity, hint=hint), samples)
        if hint is None or hint < 10:
            figures.append(at_most(f"adaptive: 40, 10, 80, hint {name} / ideal", outcome.wall / ideal, "x", 1.15))
        figures += [
            at_most(f"adaptive: 40, 10, 80, hint {name}, refusals", outcome.refusals, "", 80),
            at_most(f"adaptive: 40 to 10, hint {name}, after", outcome.settled(10, 20), "s", 5),
            at_most(f"adaptive: 10 to 80, hint {name}, after", outcome.settled(80, 40), "s", 16),
        ]
    return figures


def _outage() -> list[Figure]:
    """Everything is refused for 30 s, with a hint of 60 s: the limit falls at once, and is back soon after."""

    def capacity(now: float) -> int:
        return 0 if 20 <= now < 50 else 40

    outcome = _adapt(Server(capacity=capacity, hint=60.0), 4000)
    fallen = next(time for time, limit in outcome.trace if time > 20 and limit == 1) - 20
    return [
        at_most("adaptive: outage of 30 s, hint 60 s, limit at 1 after", fallen, "s", 2),
        at_most("adaptive: outage of 30 s, hint 60 s, found again after", outcome.settled(40, 50), "s", 25),
        at_most("adaptive: outage of 30 s, hint 60 s, refusals", outcome.refusals, "", 80),
    ]


def _noisy() -> list[Figure]:
    """Latency lognormal, mean 1 s, sigma 0.5 and 1: half the requests take 0.6 s, one in 40 more than 4 s."""
    figures = []
    for sigma, capacity in itertools.product((0.5, 1.0), (5, 40, 400)):

        def server(sigma: float = sigma, capacity: int = capacity) -> Server:
            chance = random.Random(3)
            return Server(_always(capacity), lambda: chance.lognormvariate(-sigma * sigma / 2, sigma))

        outcome, static = (_adapt(server(), 60 * capacity, limits) for limits in (LIMITS, capacity))
        name = f"adaptive: capacity {capacity}, lognormal {sigma:g}"
        figures.append(at_most(f"{name} / best static", outcome.wall / static.wall, "x", 1.08))
        figures.append(reference(f"{name}, refusals", outcome.refusals, ""))
    return figures


def _shared() -> list[Figure]:
    """Others use the same credential: what they leave changes every second by up to 8, between 5 and 120."""
    levels = []
    for seed in range(5):
        chance = random.Random(seed)
        left = [60]
        while len(left) < 1000:
            left.append(min(120, max(5, left[-1] + chance.randint(-8, 8))))
        levels.append(left)

    def capacity(left: list[int]) -> Callable[[float], int]:
        return lambda now: left[int(now)]

    def all_of(limits: AdaptiveLimits | int) -> tuple[float, int]:
        outcomes = [_adapt(Server(capacity=capacity(left)), 3000, limits) for left in levels]
        return sum(outcome.wall for outcome in outcomes), sum(outcome.refusals for outcome in outcomes)

    wall, refusals = all_of(LIMITS)
    static, brute = min(all_of(number) for number in (20, 40, 60, 80))
    ideal = sum(_ideal(capacity(left), 3000) for left in levels)
    return [
        at_most("adaptive: shared with others / ideal", wall / ideal, "x", 1.2),
        at_most("adaptive: shared with others / best static", wall / static, "x", 1.05),
        at_most("adaptive: shared with others, refusals of 15,000", refusals, "", 300),
        reference("adaptive: shared with others, refusals of the best static", brute, ""),
    ]


def _buckets() -> list[Figure]:
    """A quota of 600 requests or 60,000 tokens a minute: told in headers (nothing is refused), or hidden."""
    figures = []
    chance = random.Random(5)
    tokens = [chance.randint(50, 150) for _ in range(700)]
    # A bucket is full at the start, a sixth of a minute's worth, and fills with a sixtieth each second.
    kinds = (
        ("600 rpm", (600.0, 1e9), (len(tokens) - 100) / 10),
        ("60,000 tpm", (1e9, 60_000.0), (sum(tokens) - 10_000) / 1000),
    )
    for (name, bucket, ideal), tells in itertools.product(kinds, (True, False)):
        outcome = World(Server(bucket=bucket, tells=tells), LIMITS).run(len(tokens), iter(tokens).__next__)
        label = f"adaptive: {name}, {'told' if tells else 'hidden'}"
        figures.append(at_most(f"{label} / ideal", outcome.wall / ideal, "x", 1.06))
        figures.append(at_most(f"{label}, refusals", outcome.refusals, "", 1 if tells else 70))
    return figures


def measure() -> list[Figure]:
    return [*_constant(), *_stepped(), *_outage(), *_noisy(), *_shared(), *_buckets()]


if __name__ == "__main__":
    main(measure)
