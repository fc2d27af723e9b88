"""The working clock: what counts when branches of a sample wait and work at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.limits import _work_clock
from proctor.limits._work_clock import WorkClock


class Ticks:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def clock(ticks: Ticks) -> WorkClock:
    return WorkClock(ticks)


def test_requests_that_fail_side_by_side_count_once(ticks: Ticks, clock: WorkClock) -> None:
    requests = [clock.sent() for _ in range(10)]
    ticks.now = 3
    for request in requests:
        clock.failed(request)
    ticks.now = 4

    assert clock.waited() == 3
    assert clock.working_time() == 1


def test_a_request_that_is_answered_beside_a_failed_one_is_work(ticks: Ticks, clock: WorkClock) -> None:
    failed = clock.sent()
    ticks.now = 2
    answered = clock.sent()
    ticks.now = 5
    clock.answered(answered)
    ticks.now = 6
    clock.failed(failed)

    assert clock.waited() == 2 + 1


def test_what_was_kept_for_an_undecided_request_is_counted_when_that_fails_too(ticks: Ticks, clock: WorkClock) -> None:
    long = clock.sent()
    ticks.now = 2
    short = clock.sent()
    ticks.now = 4
    clock.failed(short)
    assert clock.waited() == 0, "the longer request may still be answered"
    ticks.now = 6
    clock.failed(long)

    assert clock.waited() == 6


def test_a_pause_beside_a_request_is_work_only_if_that_is_answered(ticks: Ticks, clock: WorkClock) -> None:
    for ended in (clock.answered, clock.failed):
        request = clock.sent()
        clock.pause()
        ticks.now += 5
        ended(request)
        ticks.now += 1
        clock.resume()

    assert clock.waited() == 1 + 6


def test_time_that_was_shown_as_work_is_not_taken_back(ticks: Ticks, clock: WorkClock) -> None:
    request = clock.sent()
    ticks.now = 5
    assert clock.working_time() == 5
    clock.failed(request)
    ticks.now = 7

    assert (clock.worked(), clock.working_time()) == (2, 5)


@dataclass(frozen=True)
class Span:
    start: int
    end: int
    kind: str

    def at(self, tick: int) -> bool:
        return self.start <= tick < self.end


def expected(spans: list[Span], now: int) -> int:
    """Tick by tick: somebody waits, and nobody's request is answered or undecided."""
    count = 0
    for tick in range(now):
        kinds = {span.kind for span in spans if span.at(tick)}
        count += bool(kinds & {"pause", "failed"}) and not kinds & {"answered", "open"}
    return count


moves = st.lists(
    st.tuples(st.sampled_from(["pause", "resume", "send", "answer", "fail", "tick"]), st.integers(0, 5)), max_size=60
)


class Simulation:
    """A clock, and all that was ever told to it."""

    def __init__(self) -> None:
        self.ticks = Ticks()
        self.clock = WorkClock(self.ticks)
        self.done: list[Span] = []
        self.pauses: list[int] = []
        self.requests: list[tuple[int, int]] = []

    @property
    def now(self) -> int:
        return int(self.ticks.now)

    def move(self, name: str, number: int) -> None:
        if name == "tick":
            self.ticks.now += number
        elif name == "pause":
            self.clock.pause()
            self.pauses.append(self.now)
        elif name == "send":
            self.requests.append((self.clock.sent(), self.now))
        elif name == "resume" and self.pauses:
            self.clock.resume()
            self.done.append(Span(self.pauses.pop(number % len(self.pauses)), self.now, "pause"))
        elif name in ("answer", "fail") and self.requests:
            key, start = self.requests.pop(number % len(self.requests))
            (self.clock.answered if name == "answer" else self.clock.failed)(key)
            self.done.append(Span(start, self.now, "answered" if name == "answer" else "failed"))

    def spans(self) -> list[Span]:
        waits = [Span(start, self.now, "pause") for start in self.pauses]
        return [*self.done, *waits, *(Span(start, self.now, "open") for _, start in self.requests)]


@given(moves)
def test_waiting_is_what_a_count_tick_by_tick_says(steps: list[tuple[str, int]]) -> None:
    simulation = Simulation()
    for name, number in steps:
        simulation.move(name, number)

        assert simulation.clock.waited() == expected(simulation.spans(), simulation.now)


@given(moves)
def test_working_time_is_between_nothing_and_all_and_never_falls(steps: list[tuple[str, int]]) -> None:
    simulation = Simulation()
    shown = 0.0
    for name, number in steps:
        simulation.move(name, number)
        time = simulation.clock.working_time()

        assert shown <= time <= simulation.clock.elapsed()
        shown = time


@given(moves)
def test_a_short_memory_never_counts_work_as_waiting(steps: list[tuple[str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_work_clock, "_LONGEST_HISTORY", 2)
        simulation: Any = Simulation()
        for name, number in steps:
            simulation.move(name, number)

            assert 0 <= simulation.clock.waited() <= expected(simulation.spans(), simulation.now)
            assert len(simulation.clock._answered) + len(simulation.clock._counted) <= 3
