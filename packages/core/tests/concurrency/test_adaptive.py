"""Each rule of the adaptive limit, on a clock that stands unless a test moves it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from virtual_provider import Clock, VirtualProvider

from proctor.concurrency import (
    AdaptiveController,
    AdaptiveLimits,
    LimitChange,
    Token,
)
from proctor.contracts import UsageError

LATENCY = 1.0


class Client:
    """A controller, and what a client does with it: fills the limit, and lets whole rounds pass."""

    def __init__(self, least: int = 1, start: int = 20, most: int = 100) -> None:
        self.clock = Clock()
        self.changes: list[LimitChange] = []
        limits = AdaptiveLimits(least, start, most)
        self.controller = AdaptiveController(limits, now=self.clock, on_change=self.changes.append)
        self.out: list[Token] = []

    @property
    def history(self) -> list[tuple[int, int]]:
        """From what to what the limit moved, with what goes on with the change before as a part of that."""
        found: list[tuple[int, int]] = []
        for change in self.changes:
            start = found.pop()[0] if change.more else change.old
            found.append((start, change.new))
        return found

    @property
    def limit(self) -> int:
        self.controller.tend()
        return self.controller.limit

    def fill(self) -> list[Token]:
        """Send until the limit is reached."""
        while len(self.out) < self.limit:
            self.out.append(self.controller.sent())
        return self.out

    def take(self, count: int | None = None) -> Sequence[Token]:
        """The oldest requests in flight, which the test ends itself."""
        taken = self.out[:count]
        del self.out[: len(taken)]
        return taken

    def wait(self, seconds: float) -> None:
        """Let time pass, and look for slots every hundredth second."""
        for _ in range(round(seconds * 100)):
            self.clock.now += 0.01
            assert self.limit

    def round(self) -> None:
        """All that is in flight is answered after the latency, and replaced at once."""
        self.fill()
        self.wait(LATENCY)
        for token in self.take(len(self.out)):
            self.controller.succeeded(token)
            self.out.append(self.controller.sent())

    def refuse(self, after: float | None = None) -> None:
        """A place is given back, and who gets it is refused."""
        self.fill()
        self.controller.neutral(self.out.pop(0))
        self.controller.refused(self.controller.sent(), after)

    def settle(self, capacity: int) -> None:
        """As after a slow start that ended at ``capacity``."""
        while self.limit <= capacity:
            self.round()
            self.wait(LATENCY)
        self.fill()
        del self.out[capacity + 1 :]
        self.controller.refused(self.out.pop())
        assert self.limit == capacity


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (True, (1, 20, 100)),
        (None, (1, 20, 100)),
        (200, (1, 20, 200)),
        (5, (1, 5, 5)),
        ({"min": 30, "max": 60}, (30, 30, 60)),
        ({"min": 2, "start": 4, "max": 8}, (2, 4, 8)),
        ({"min": 200}, (200, 200, 200)),
        ({"max": 50, "cooldown": 3}, (1, 20, 50)),
    ],
)
def test_the_setting_says_the_bounds(value: bool | int | dict[str, int] | None, bounds: tuple[int, int, int]) -> None:
    assert AdaptiveLimits.of(value) == AdaptiveLimits(*bounds)


def test_the_setting_turns_it_off() -> None:
    assert AdaptiveLimits.of(False) is None


@pytest.mark.parametrize("value", [{"min": 9, "max": 3}, {"min": 5, "start": 2, "max": 9}, -3, {"max": 2.5}])
def test_bounds_that_are_none_are_refused(value: int | dict[str, int]) -> None:
    with pytest.raises(UsageError, match="--adaptive-connections"):
        AdaptiveLimits.of(value)


def test_the_limit_starts_at_start_and_doubles_per_clean_round() -> None:
    client = Client(start=20, most=1000)
    limits = [client.limit]
    for _ in range(4):
        client.round()
        client.wait(LATENCY / 2)
        limits.append(client.limit)

    assert limits == [20, 40, 80, 160, 320]
    assert {change.reason for change in client.changes} == {"slow_start"}


def test_answers_that_come_together_open_their_slots_one_at_a_time() -> None:
    client = Client(start=10)
    client.round()

    assert client.limit == 11
    assert client.controller.due() == pytest.approx(LATENCY / 2 / 10)
    opened = []
    while (wait := client.controller.due()) is not None:
        client.clock.now += wait + 1e-9
        opened.append(client.limit)
    assert opened == [12, 13, 14, 15, 16, 17, 18, 19, 20]


def test_looking_at_the_limit_opens_nothing() -> None:
    client = Client(start=10)
    client.round()
    client.clock.now += 1000

    assert [client.controller.limit, client.controller.limit] == [11, 11]
    client.controller.tend()
    assert client.controller.limit == 12


def test_who_looks_late_finds_no_burst() -> None:
    client = Client(start=20)
    client.round()
    client.clock.now += 1000

    assert client.limit == 22


def test_the_first_refusal_stops_growth_and_cuts_to_just_under_its_level() -> None:
    client = Client(start=20)
    client.round()
    client.wait(0.1)
    tokens = client.fill()
    level = len(tokens)
    assert client.controller.due() is not None
    client.controller.refused(tokens.pop(), 1.0)

    assert client.limit == level - 1
    assert client.controller.due() is None
    assert client.changes[-1] == LimitChange(level, level - 1, "rate_limit")


def test_what_was_refused_of_a_start_above_the_capacity_is_one_cut_to_the_capacity() -> None:
    client = Client(start=20)
    tokens = client.fill()
    for token in tokens[5:]:
        client.controller.refused(token, 1.0)

    assert client.limit == 5
    assert client.history == [(20, 5)]


def test_refusals_of_what_was_sent_before_a_cut_do_not_cut_again() -> None:
    client = Client(start=40)
    client.settle(44)
    client.out = [client.controller.sent() for _ in range(8)]  # more in flight than the limit, as after a cut
    before = len(client.changes)
    refused = client.take(4)
    for token in refused:
        client.controller.refused(token)

    assert [change.reason for change in client.changes[before:]] == ["rate_limit"]


def test_a_refusal_after_the_cut_cuts_again() -> None:
    client = Client(start=40)
    client.refuse()
    client.refuse()

    assert [new for _, new in client.history] == [39, 37]


def test_a_fall_of_the_capacity_closes_the_places_of_all_that_is_refused_down_to_half_in_one_cut() -> None:
    client = Client(start=40)
    for token in reversed(client.fill()[10:]):
        client.controller.refused(token)

    assert client.limit == 20
    assert client.history == [(40, 20)]


def test_cuts_that_bring_no_success_grow() -> None:
    client = Client(start=100, most=100)
    limits = []
    while client.limit > 1:
        client.refuse(60.0)
        limits.append(client.limit)

    assert limits == [99, 97, 93, 85, 69, 37, 1]


def test_any_success_makes_the_next_cut_small_again() -> None:
    client = Client(start=100, most=100)
    for _ in range(5):
        client.refuse()
    client.out.clear()
    client.controller.succeeded(client.controller.sent())
    client.controller.refused(client.controller.sent(69))

    assert client.limit == 68


def test_the_limit_never_goes_under_min_or_over_max() -> None:
    client = Client(least=8, start=10, most=30)
    for _ in range(6):
        client.round()
        client.wait(LATENCY)
    assert client.limit == 30
    assert client.controller.due() is None

    for _ in range(20):
        client.refuse()
    assert client.limit == 8


def test_after_a_refusal_the_limit_probes_by_one_slot_after_a_clean_round() -> None:
    client = Client()
    client.settle(40)
    before = len(client.changes)
    client.round()  # answers to what was sent before the cut say nothing
    assert client.limit == 40
    client.round()
    client.wait(LATENCY / 2)

    assert client.limit == 41
    assert [change.reason for change in client.changes[before:]] == ["steady_state_up"]


def test_probes_that_fail_at_the_same_level_get_rarer() -> None:
    provider = VirtualProvider(AdaptiveLimits(1, 20, 1000), capacity=40, hint=1.0)
    provider.run(120)
    cuts = provider.cuts
    gaps = [later - earlier for earlier, later in pairwise(cuts)]

    assert [round(gap) for gap in gaps[:5]] == [2, 3, 5, 9, 9]
    assert provider.refusals < 20


def test_a_probe_that_succeeds_starts_quick_growth() -> None:
    provider = VirtualProvider(AdaptiveLimits(1, 20, 1000), capacity=10)
    provider.run(30)
    assert provider.controller.limit in (10, 11)
    provider.capacity = 300
    provider.run(30)

    assert 290 <= provider.controller.limit <= 305


@pytest.mark.parametrize("slow", [True, False])
def test_a_server_error_pauses_growth_and_does_not_cut(slow: bool) -> None:
    client = Client(start=20)
    if not slow:
        client.settle(24)
    limit = client.limit
    client.round()
    client.wait(LATENCY)
    client.controller.troubled(client.take(1)[0])
    paused = client.limit
    assert paused >= limit
    assert client.controller.due() is None
    client.fill()
    for token in client.take(10):
        client.controller.succeeded(token)
    assert client.limit == paused

    for _ in range(4):
        client.round()
        client.wait(LATENCY)
    assert client.limit > paused
    assert "rate_limit" not in {change.reason for change in client.changes[-2:]}


def test_one_error_in_twenty_does_not_stop_growth_for_good() -> None:
    client = Client(start=20, most=400)
    answers = 0
    for _ in range(40):
        client.fill()
        client.wait(LATENCY)
        for token in client.take(len(client.out)):
            answers += 1
            if answers % 20:
                client.controller.succeeded(token)
            else:
                client.controller.troubled(token)

    assert client.limit > 60


def test_what_a_cache_answered_and_what_was_cancelled_says_nothing() -> None:
    client = Client(start=20)
    for _ in range(10):
        client.fill()
        client.wait(LATENCY)
        for token in client.take(len(client.out)):
            client.controller.neutral(token)

    assert (client.limit, client.changes, client.controller.in_flight) == (20, [], 0)


def test_answers_to_repeated_requests_do_not_raise_the_limit() -> None:
    client = Client(start=20)
    client.refuse()
    for _ in range(3):
        client.fill()
        for token in client.take(len(client.out)):
            client.controller.repeated(token)

    assert client.limit == 19


def test_the_limit_rises_after_an_outage_even_if_only_repeated_requests_are_left() -> None:
    client = Client(start=20)
    while client.limit > 1:
        client.refuse(60.0)
    client.out.clear()
    for _ in range(60):
        token = client.controller.sent()
        client.wait(0.1)
        client.controller.repeated(token)

    assert client.limit > 3


def test_a_limit_that_is_not_used_does_not_grow() -> None:
    client = Client(start=20)
    for _ in range(100):
        tokens = [client.controller.sent() for _ in range(10)]
        client.wait(0.1)
        for token in tokens:
            client.controller.succeeded(token)

    assert client.limit == 20


def test_nothing_is_sent_for_a_while_when_even_the_smallest_limit_is_refused() -> None:
    client = Client(start=20)
    while client.limit > 1:
        client.refuse(60.0)
    assert client.controller.hold() == 0
    client.refuse(60.0)

    assert client.controller.hold() == 15  # whatever the hint: the next request must find out whether it is over
    client.clock.now += 15
    assert client.controller.hold() == 0
    client.refuse(0.0)
    assert client.controller.hold() == 0.25
    client.controller.succeeded(client.controller.sent())
    assert client.controller.hold() == 0


def test_without_hints_the_pauses_grow() -> None:
    client = Client(start=1)
    pauses = []
    for _ in range(12):
        client.refuse()
        pauses.append(client.controller.hold())
        client.clock.now += pauses[-1]

    assert pauses == [0, 0, 0.25, 0.5, 1, 2, 4, 8, 15, 15, 15, 15]


def test_a_client_counts_others_on_the_same_credential() -> None:
    client = Client(start=40)
    for level in range(21, 41):
        token = client.controller.sent(level)
    client.controller.refused(token)

    assert client.limit == 39


def test_a_limit_that_another_process_found_is_adopted_within_the_bounds_and_told_to_nobody() -> None:
    client = Client(start=20, most=100)
    found = []
    for limit in (50, 7, 700):
        client.controller.adopt(limit)
        found.append(client.limit)

    assert found == [50, 7, 100]
    assert client.changes == []


def test_slots_of_one_round_are_told_one_by_one_as_parts_of_one_change() -> None:
    client = Client(start=20)
    client.round()
    client.wait(LATENCY * 0.9)

    assert client.history == [(20, 40)]
    assert [change.new for change in client.changes] == list(range(21, 41))


def test_a_screen_can_see_what_is_known() -> None:
    client = Client(start=20)
    client.settle(24)
    client.round()
    state = client.controller.state()

    assert (state.limit, state.phase, state.refused_at, state.refusals) == (client.limit, "steady", 25, 1)
    assert state.latency is not None and LATENCY <= state.latency <= 2 * LATENCY
    assert 0 <= state.round <= 1
    assert state.in_flight == client.controller.in_flight
    assert state.hold == 0
