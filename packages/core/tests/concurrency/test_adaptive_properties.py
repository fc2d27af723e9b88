"""What holds for the adaptive limit whatever happens: bounds, one cut per episode, and that it finds any capacity."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_provider import Clock, VirtualProvider

from proctor.concurrency import (
    AdaptiveController,
    AdaptiveLimits,
    LimitChange,
    Token,
)

HINTS = st.sampled_from([None, 0.0, 1.0, 60.0, 3600.0])


@st.composite
def bounds(draw: st.DrawFn) -> AdaptiveLimits:
    low, start, high = sorted(draw(st.lists(st.integers(1, 300), min_size=3, max_size=3)))
    return AdaptiveLimits(low, start, high)


# How a request ends, which of those in flight it is, how many are sent before, how much time passes before.
ENDS = st.sampled_from(["succeeded", "repeated", "refused", "troubled", "neutral"])
Step: TypeAlias = tuple[str, int, int, float, float | None]
STEPS = st.lists(st.tuples(ENDS, st.integers(0, 400), st.integers(0, 40), st.floats(0, 5), HINTS), max_size=60)


@given(bounds(), STEPS)
@settings(max_examples=60)
def test_the_limit_stays_in_bounds_and_every_change_is_told(limits: AdaptiveLimits, steps: list[Step]) -> None:
    clock = Clock()
    told: list[LimitChange] = []
    controller = AdaptiveController(limits, now=clock, on_change=told.append)
    out: list[Token] = []
    cuts = episode = 0
    for end, which, more, seconds, hint in steps:
        clock.now += seconds
        out += [controller.sent() for _ in range(max(more, not out))]
        token = out.pop(which % len(out))
        before = len(told)
        if end == "refused":
            new_episode = token[0] > episode
            controller.refused(token, hint)
            if new_episode:
                episode = controller.sent()[0]  # a marker: all before it was sent before the cut
                controller.neutral((episode, clock.now, 0))
            added = [change.reason for change in told[before:] if not change.more]
            cuts += added.count("rate_limit")
            assert len(added) <= new_episode
        else:
            getattr(controller, end)(token)
            assert "rate_limit" not in {change.reason for change in told[before:]}
        controller.tend()
        assert limits.min <= controller.limit <= limits.max
        assert controller.in_flight == len(out)
        assert 0 <= controller.hold() <= 15.001  # and the rounding of the clock
        due = controller.due()
        assert due is None or 0 <= due < 1e6

    assert [change.old for change in told] == [limits.start, *(change.new for change in told)][: len(told)]
    assert not told or told[-1].new == controller.limit
    assert all((change.new < change.old) == (change.reason == "rate_limit") for change in told)
    assert all(later.reason == earlier.reason for earlier, later in pairwise(told) if later.more)
    assert not told or not told[0].more
    reasons = [change.reason for change in told]
    assert "slow_start" not in reasons[reasons.index("rate_limit") :] if cuts else True


@given(bounds(), st.lists(HINTS, min_size=1, max_size=3))
def test_sustained_refusals_reach_the_minimum_in_a_bounded_number_of_requests(
    limits: AdaptiveLimits, hints: list[float | None]
) -> None:
    controller = AdaptiveController(limits, now=Clock())
    refusals = 0
    while controller.limit > limits.min:
        while controller.in_flight < controller.limit - 1:
            controller.sent()
        controller.refused(controller.sent(), hints[refusals % len(hints)])
        refusals += 1

    assert refusals <= 9  # the cuts double, from a hundredth


@pytest.mark.slow
@given(st.integers(1, 120), st.integers(1, 120), HINTS, st.floats(0.2, 3.0))
@settings(max_examples=25)
def test_any_step_of_the_capacity_is_found(before: int, after: int, hint: float | None, latency: float) -> None:
    provider = VirtualProvider(AdaptiveLimits(1, 20, 1000), capacity=before, latency=latency, hint=hint)
    provider.run(60 * latency)
    near = max(2, before // 10)
    assert before - near <= provider.controller.limit <= before + near

    provider.capacity = after
    provider.run(60 * latency)
    near = max(2, after // 10)
    assert after - near <= provider.controller.limit <= after + near


@pytest.mark.slow
@given(st.integers(2, 80), HINTS, st.floats(10.0, 400.0))
@settings(max_examples=25)
def test_an_outage_does_not_freeze_it(capacity: int, hint: float | None, outage: float) -> None:
    provider = VirtualProvider(AdaptiveLimits(1, 20, 1000), capacity=capacity, hint=hint)
    provider.run(30)
    provider.capacity = 0
    provider.run(outage)
    assert provider.controller.limit == 1

    provider.capacity = capacity
    provider.run(15 + 60)  # the longest pause, and what it takes to find the capacity again
    assert provider.controller.limit >= 0.9 * capacity - 1


@pytest.mark.slow
@given(st.integers(2, 200), st.integers(1, 8))
@settings(max_examples=25)
def test_refusals_of_a_steady_provider_are_few(capacity: int, latency: int) -> None:
    provider = VirtualProvider(AdaptiveLimits(1, 20, 1000), capacity=capacity, latency=float(latency), hint=1.0)
    provider.run(100.0 * latency)

    # What is too much of the start, what left while the first refusal was on its way, and a probe per 8 rounds.
    assert provider.refusals <= max(0, 20 - capacity) + capacity // 20 + 25
