"""Quotas are spent evenly: those that a provider tells of and those that the user set, and no header freezes a run."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from virtual_provider import Clock

from proctor.concurrency import RequestPacer
from proctor.contracts import RateLimits


class Sender:
    """Sends through a pacer as fast as it allows."""

    def __init__(self, max_rpm: int | None = None, max_tpm: int | None = None) -> None:
        self.clock = Clock()
        self.pacer = RequestPacer(max_rpm=max_rpm, max_tpm=max_tpm, now=self.clock)
        self.left: list[float] = []

    def send(self, tokens: int | None = 0) -> float:
        """Seconds that the next request waits."""
        start = self.clock.now
        turn = self.pacer.book(tokens)
        while turn is not None and (seconds := self.pacer.wait(turn)) > 0:
            assert seconds <= 60
            self.clock.now += seconds
        self.left.append(self.clock.now)
        return self.clock.now - start

    def hear(self, remaining: int | None, reset: float | None, limit: int | None = None) -> None:
        """The headers of an answer, for requests."""
        self.pacer.heard(RateLimits(requests_limit=limit, requests_remaining=remaining, requests_reset=reset))


def test_without_budgets_and_headers_nothing_waits() -> None:
    sender = Sender()

    assert sender.pacer.book(1_000_000) is None
    assert [sender.send() for _ in range(100)] == [0] * 100


def test_a_budget_of_requests_is_spent_evenly() -> None:
    sender = Sender(max_rpm=120)
    for _ in range(10):
        sender.send()

    assert sender.left == pytest.approx([index * 0.5 for index in range(10)])


def test_a_budget_that_was_not_used_does_not_add_up() -> None:
    sender = Sender(max_rpm=60)
    sender.clock.now = 1000

    assert [sender.send(), sender.send()] == pytest.approx([0, 1])


@given(st.integers(1, 600), st.lists(st.floats(0, 20), max_size=200))
def test_no_minute_sees_more_requests_than_the_budget(rpm: int, idle: list[float]) -> None:
    sender = Sender(max_rpm=rpm)
    for seconds in idle:
        sender.clock.now += seconds
        sender.send()

    for first, start in enumerate(sender.left):
        # A minute is open at its end: 60 s later the next may leave. The clock rounds.
        assert sum(time < start + 60 - 1e-6 for time in sender.left[first:]) <= rpm


def test_a_budget_of_tokens_makes_the_next_request_wait() -> None:
    sender = Sender(max_tpm=60_000)

    # What costs nothing waits for nothing.
    assert [sender.send(2000), sender.send(500), sender.send(0)] == pytest.approx([0, 2, 0])


def test_tokens_are_corrected_by_what_was_used() -> None:
    sender = Sender(max_tpm=60_000)
    sender.send(0)
    sender.pacer.settle(3000)
    assert sender.send(4000) == pytest.approx(3)
    sender.pacer.settle(1000)

    assert sender.send(1) == pytest.approx(1)


def test_tokens_of_what_was_refused_are_given_back() -> None:
    sender = Sender(max_tpm=60)
    sender.send(60)
    sender.pacer.settle(0)

    assert sender.send(60) == 0


def test_the_average_cost_is_what_to_expect() -> None:
    pacer = RequestPacer()
    assert pacer.expected == 0
    pacer.settle(1000)
    assert pacer.expected == 1000
    for _ in range(100):
        pacer.settle(200)
    pacer.settle(0)  # refused: no cost of a request

    assert pacer.expected == pytest.approx(200, abs=2)


def test_the_first_request_tells_what_the_others_cost() -> None:
    pacer = RequestPacer(max_tpm=6000, now=Clock())
    assert pacer.book() is None  # nobody knows what it costs
    others = [pacer.book() for _ in range(5)]
    assert all(turn is not None and 0 < pacer.wait(turn) < 1 for turn in others)
    pacer.settle(200)  # two seconds' worth

    assert [pacer.wait(turn) for turn in others if turn] == pytest.approx([2] * 5)


def test_a_provider_that_never_says_what_it_used_is_not_waited_for() -> None:
    pacer = RequestPacer(max_tpm=6000, now=Clock())
    assert pacer.book() is None
    pacer.settle(None)

    assert [pacer.book() for _ in range(5)] == [None] * 5


def test_many_requests_are_booked_with_the_average_and_corrected_in_all() -> None:
    sender = Sender(max_tpm=6000)
    sender.pacer.settle(100)
    sender.send(None)
    for _ in range(4):
        assert sender.send(None) == pytest.approx(1)  # 100 tokens at 100 a second
    for _ in range(5):
        sender.pacer.settle(300)
    assert sender.send(0) == 0
    assert sender.send(1) == pytest.approx(11)  # a second for the last, and twice 100 more for each of five


def test_what_waits_has_taken_nothing() -> None:
    clock = Clock()
    pacer = RequestPacer(max_rpm=60, now=clock)
    assert pacer.book() is None
    killed = [pacer.book() for _ in range(40)]

    assert all(turn is not None and pacer.wait(turn) == 1 for turn in killed)
    clock.now += 1
    assert pacer.book() is None


class Pool:
    """Records what is taken of budgets that processes share."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, ...]] = []

    def pay(self, now: float, requests: float, tokens: float) -> float:
        self.calls.append((now, requests, tokens))
        return 7.0 if len(self.calls) == 1 else 0.0

    def charge(self, now: float, tokens: float) -> None:
        self.calls.append((now, tokens))


def test_budgets_of_several_processes_are_kept_in_their_pool() -> None:
    clock, pool = Clock(), Pool()
    clock.now = 100.0
    pacer = RequestPacer(max_rpm=60, max_tpm=6000, pool=pool, now=clock)
    turn = pacer.book(50)
    assert turn is not None
    assert (pacer.wait(turn), pacer.wait(turn)) == (0, 0)  # paid for once
    pacer.settle(30)

    assert pool.calls == [(100, 1, 0.5), (100, 1, 0.5), (100, pytest.approx(-0.2))]


def test_what_is_left_of_a_window_is_spread_over_it() -> None:
    sender = Sender()
    sender.hear(10, 30.0)
    for _ in range(11):
        sender.send()

    assert sender.left[-1] == pytest.approx(29, abs=1.5)  # a second's worth may leave at once
    assert max(later - earlier for earlier, later in pairwise(sender.left)) <= 3.001


def test_nothing_waits_past_the_reset() -> None:
    sender = Sender()
    sender.hear(0, 20.0)

    assert sender.send() == pytest.approx(20)
    assert sender.send() == 0


def test_the_pace_follows_each_answer_for_those_who_wait_too() -> None:
    sender = Sender()
    sender.hear(1, 50.0)
    turns = [sender.pacer.book() for _ in range(4)]
    last = turns[-1]
    assert last is not None
    assert sender.pacer.wait(last) > 40
    sender.hear(50, 50.0)

    assert sender.pacer.wait(last) < 4


def test_a_bucket_that_fills_all_the_time_is_never_run_dry_and_never_left_full() -> None:
    """As OpenAI and Anthropic keep their quotas: the reset is when the bucket will be full, and moves away."""
    sender = Sender()
    full, rate, left, filled, low = 100.0, 10.0, 100.0, 0.0, 100.0
    while sender.clock.now < 60:
        sender.send()
        left = min(full, left + (sender.clock.now - filled) * rate) - 1
        filled = sender.clock.now
        low = min(low, left)
        assert left >= 0
        sender.hear(int(left), (full - left) / rate, int(full))
        sender.clock.now += 0.001

    assert low >= 1
    assert len(sender.left) >= 60 * rate  # at least what flows in


@pytest.mark.parametrize(
    ("remaining", "reset"),
    [
        (None, 10.0),
        (5, None),
        (-1, 10.0),
        (5, -3.0),
        (5, 0.0),
        (5, math.nan),
        (5, math.inf),
        (0, 1e9),
        (0, 86_400.0),
        (100, 30.0),  # all of it is there
    ],
)
def test_headers_that_say_nothing_or_nonsense_hold_nothing_back(remaining: int | None, reset: float | None) -> None:
    sender = Sender()
    sender.hear(2, 60.0, 100)
    sender.hear(remaining, reset, 100)

    assert [sender.send() for _ in range(10)] == [0] * 10


def test_an_answer_without_headers_changes_nothing() -> None:
    sender = Sender()
    sender.hear(10, 30.0)
    told = sender.pacer.told
    sender.pacer.heard(None)

    assert sender.pacer.told is told
    assert sum(sender.send() for _ in range(10)) > 20


NUMBERS = st.one_of(st.none(), st.integers(-5, 10**6))
SECONDS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 100))
HEADERS = st.builds(RateLimits, NUMBERS, NUMBERS, SECONDS, NUMBERS, NUMBERS, SECONDS)


@example([(RateLimits(None, 2, 5e-324, None, None, None), 0, 0, 0.0)])
@given(st.lists(st.tuples(HEADERS, st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 100)), max_size=40))
def test_no_header_freezes_a_run(answers: list[tuple[RateLimits, int, int, float]]) -> None:
    """Whatever was told: without further news, all that is booked leaves within the longest reset that counts."""
    sender = Sender()
    for limits, tokens, used, seconds in answers:
        sender.pacer.heard(limits)
        sender.clock.now += seconds
        turns = [sender.pacer.book(tokens) for _ in range(3)]
        sender.pacer.settle(used)
        sender.clock.now += 600.1
        assert all(turn is None or sender.pacer.wait(turn) == 0 for turn in turns)
        assert sender.send(tokens) == 0
        sender.pacer.heard(limits)
        assert sender.send(tokens) <= 600


def test_a_screen_can_see_the_pace() -> None:
    sender = Sender()
    assert sender.pacer.state().requests is None
    sender.hear(10, 30.0)
    state = sender.pacer.state()

    assert (state.requests, state.tokens) == (pytest.approx(20), None)
    assert state.told is not None
