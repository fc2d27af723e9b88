"""What holds back the requests on one key: where its limit comes from, and what moves it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from proctor.concurrency import (
    AdaptiveLimits,
    ConnectionPolicy,
    Connections,
    Wish,
    all_connections,
    connections,
    run_gates,
    tend_gates,
)
from proctor.contracts import RateLimits, Retry, UsageError
from proctor.schema import ModelUsage

REFUSED = Retry("rate_limit")
USAGE = ModelUsage(input_tokens=60, output_tokens=40, total_tokens=100)


def line(limit: int | AdaptiveLimits, policy: ConnectionPolicy | None = None) -> Connections:
    return Connections("key", "test", limit, policy or ConnectionPolicy())


@pytest.mark.parametrize(
    ("wish", "policy", "limit"),
    [
        (Wish(), ConnectionPolicy(), AdaptiveLimits(1, 20, 100)),
        (Wish(adapts=False, default=8), ConnectionPolicy(), 8),
        (Wish(default=8), ConnectionPolicy(adaptive=False), 8),
        (Wish(default=8), ConnectionPolicy(adaptive=40), AdaptiveLimits(1, 20, 40)),
        (Wish(), ConnectionPolicy(adaptive={"min": 2, "start": 4, "max": 9}), AdaptiveLimits(2, 4, 9)),
        (Wish(), ConnectionPolicy(max_connections=7), 7),
        (Wish(max_connections=3), ConnectionPolicy(max_connections=7), 3),
        (Wish(max_connections=3, adaptive=True), ConnectionPolicy(), 3),
        (Wish(adaptive=12), ConnectionPolicy(adaptive=False), AdaptiveLimits(1, 12, 12)),
        (Wish(adaptive=True, adapts=False, default=2), ConnectionPolicy(), 2),
    ],
)
def test_what_is_said_nearest_holds_and_a_number_turns_adapting_off(
    wish: Wish, policy: ConnectionPolicy, limit: int | AdaptiveLimits
) -> None:
    assert wish.resolve(policy) == limit


@pytest.mark.parametrize("value", [0, -3, {"min": 5, "max": 2}, {"start": 500, "max": 20}, {"max": "many"}])
def test_bounds_that_are_none_are_refused(value: object) -> None:
    with pytest.raises(UsageError, match="--adaptive-connections"):
        AdaptiveLimits.of(value)  # type: ignore[arg-type]


def test_a_refusal_cuts_and_clean_answers_raise_the_limit() -> None:
    adaptive = line(AdaptiveLimits(1, 4, 100))
    tokens = [adaptive.sent() for _ in range(4)]
    for token in tokens[:3]:
        adaptive.answered(token, USAGE, first=True)
    adaptive.failed(tokens[3], REFUSED)
    assert adaptive.gate.limit is not None and adaptive.gate.limit < 7
    assert [change.reason for change in adaptive.history][-1] == "rate_limit"
    assert all(change.old != change.new for change in adaptive.history)


def test_server_errors_and_cancellations_do_not_cut() -> None:
    adaptive = line(AdaptiveLimits(1, 4, 100))
    for _ in range(20):
        adaptive.failed(adaptive.sent(), Retry("transient"))
        adaptive.failed(adaptive.sent(), Retry("permanent"))
        adaptive.dropped(adaptive.sent())
    assert adaptive.gate.limit == 4
    assert adaptive.controller is not None and adaptive.controller.in_flight == 0


def test_a_fixed_limit_is_moved_by_nothing_but_a_hand() -> None:
    fixed = line(4)
    assert fixed.sent() is None
    fixed.failed(None, REFUSED)
    assert fixed.gate.limit == 4
    fixed.set_limit(9)
    assert fixed.gate.limit == 9
    assert [(change.old, change.new, change.reason) for change in fixed.history] == [(4, 9, "manual")]


def test_a_limit_set_by_hand_stays() -> None:
    adaptive = line(AdaptiveLimits(1, 4, 100))
    token = adaptive.sent()
    adaptive.set_limit(50)
    adaptive.failed(token, REFUSED)
    assert (adaptive.gate.limit, adaptive.adaptive) == (50, False)


def test_samples_stand_in_for_those_that_were_sent_away() -> None:
    fixed = line(4)
    told: list[int] = []
    fixed.subscribe(lambda: told.append(fixed.samples()))
    assert fixed.samples() == 4
    with fixed.away(REFUSED), fixed.away(REFUSED):
        assert fixed.samples() == 6
    assert fixed.samples() == 4
    with fixed.away(Retry("transient")):  # a dead server gets no more samples to fail
        assert fixed.samples() == 4
    assert told == [5, 6]


def test_a_budget_holds_requests_back() -> None:
    paced = line(4, ConnectionPolicy(max_rpm=60))
    assert paced.wait(paced.book()) == 0
    assert 0.9 < paced.wait(paced.book()) <= 1.0
    assert 0.9 < paced.wait(paced.book()) <= 1.0, "who waits has taken nothing from the next"


def test_a_token_budget_learns_what_a_request_costs() -> None:
    paced = line(4, ConnectionPolicy(max_tpm=6000))
    assert paced.wait(paced.book()) == 0
    paced.answered(paced.sent(), USAGE, first=True)
    assert paced.pacer.expected == 100
    assert 0.9 < paced.wait(paced.book()) <= 1.0  # 100 tokens of 6,000 a minute are a second


def test_what_the_headers_say_holds_requests_back() -> None:
    told = line(4)
    assert told.wait(told.book()) == 0
    told.heard(RateLimits(requests_limit=100, requests_remaining=0, requests_reset=5.0))
    assert 0 < told.wait(told.book()) <= 5.0
    told.heard(None)


@pytest.mark.anyio
async def test_slots_that_fall_due_open_without_an_answer() -> None:
    with run_gates():
        adaptive = connections("key", "test", lambda: Wish(adaptive={"start": 16, "max": 100}))
        tokens = [adaptive.sent() for _ in range(16)]
        await anyio.sleep(0.02)
        for token in tokens:
            adaptive.answered(token, USAGE, first=True)
        assert all_connections() == [adaptive]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tend_gates)
            with anyio.fail_after(20):
                while adaptive.gate.limit != 32:  # noqa: ASYNC110 - the passing of time is what is tested
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()


OTHER = """
import json, sys
from proctor.concurrency import AdaptiveLimits, ConnectionPolicy, Connections
from proctor.contracts import Retry
line = Connections("key", "test", AdaptiveLimits(1, 40, 100), ConnectionPolicy(share="test"))
def send():
    assert line.gate.try_acquire()
    return line.sent()
send()
adopted = line.gate.limit
tokens = [send() for _ in range(10)]
line.failed(tokens[-1], Retry("rate_limit"))
print(json.dumps([adopted, line.gate.limit]))
"""


def test_processes_that_share_find_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    policy = ConnectionPolicy(share="test")
    mine = line(AdaptiveLimits(1, 40, 100), policy)

    def send() -> Any:
        assert mine.gate.try_acquire()
        return mine.sent()

    tokens = [send() for _ in range(30)]
    mine.failed(tokens[-1], REFUSED)
    for _ in range(20):
        mine.gate.release()
    cut = mine.gate.limit
    assert cut is not None and cut < 31
    done = subprocess.run([sys.executable, "-c", OTHER], capture_output=True, text=True, timeout=60, check=True)
    adopted, theirs = json.loads(done.stdout)
    assert adopted == cut, "the other process starts with the limit that this one found"
    assert theirs < cut
    send()
    assert mine.gate.limit == theirs
    assert mine.history[-1].new == theirs
    mine.close()
