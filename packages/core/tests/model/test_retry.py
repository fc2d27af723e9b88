"""The retry budget: how many requests, how long between, and what ends it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.concurrency import (
    Gate,
    RequestPacer,
    Wish,
    connections,
)
from proctor.limits import SampleLimits, use_limits
from proctor.model import AttemptTimeout, GenerateConfig, GenerateTimeout
from proctor.model._generate import Generation
from proctor.model._retry import backoff
from proctor.schema import ChatMessageUser

pytestmark = pytest.mark.anyio


def gate_of(key: str, limit: int) -> Gate:
    """The gate of the connections on ``key``, made with a fixed limit when it is the first to ask."""
    return connections(key, "test", lambda: Wish(limit)).gate


@pytest.mark.parametrize("kind", ["rate_limit", "transient"])
@pytest.mark.parametrize("retries", [0, 3])
async def test_a_failure_that_lasts_is_sent_once_more_than_it_is_retried(
    scripted: Any, refused: Any, kind: str, retries: int
) -> None:
    model, api = scripted(refused(kind))

    with pytest.raises(Exception, match="refused") as raised:
        await model.generate("?", config=GenerateConfig(max_retries=retries))

    assert len(api.inputs) == retries + 1
    assert f"gave up after {retries + 1} attempts" in raised.value.__notes__[0]


async def test_by_default_twenty_retries_are_made(scripted: Any, refused: Any) -> None:
    model, api = scripted(refused("transient"))

    with pytest.raises(Exception, match="refused"):
        await model.generate("?")

    assert len(api.inputs) == 21
    assert model.retries == {"transient": 20}


async def test_the_latest_error_can_be_read_without_its_credentials(scripted: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("ACME_API_KEY", "very-secret-1234")
    model, _ = scripted(
        ConnectionError("no route\nto http://me:pw@host with very-secret-1234" + " and so on" * 200), "fine"
    )

    await model.generate("?")

    assert model.last_error.startswith("ConnectionError: no route to http://host with [ACME_API_KEY] and so on")
    assert len(model.last_error) == 300


async def test_a_permanent_failure_is_sent_exactly_once(scripted: Any, refused: Any, clock: Any) -> None:
    model, api = scripted(refused("permanent"))

    with pytest.raises(Exception, match="refused"):
        await model.generate("?")

    assert len(api.inputs) == 1
    assert clock.slept == []


async def test_an_unknown_error_is_permanent_and_a_lost_connection_is_not(scripted: Any) -> None:
    model, api = scripted(RuntimeError("a bug"))
    with pytest.raises(RuntimeError):
        await model.generate("?")
    assert len(api.inputs) == 1

    model, api = scripted(ConnectionResetError("lost"), "fine")
    assert (await model.generate("?")).completion == "fine"
    assert len(api.inputs) == 2


async def test_waits_double_under_full_jitter_and_hints_win_when_longer(
    scripted: Any, refused: Any, clock: Any
) -> None:
    model, _ = scripted(
        refused("transient"),
        refused("transient"),
        refused("transient"),
        refused("rate_limit", 30.0),
        refused("rate_limit", 0.01),
        refused("rate_limit", 4000.0),
        "fine",
    )

    await model.generate("?")

    assert clock.slept == [0.5, 1.0, 2.0, 30.0, 8.0, 300.0]


@given(st.integers(1, 10_000), st.none() | st.floats(0, 1e9), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_bounded(retry: int, hint: float | None, chance: float) -> None:
    wait = backoff(retry, hint, chance)

    assert 0 <= wait <= 300
    assert hint is None or wait >= min(hint, 300)
    assert hint is not None or wait <= min(60, 2.0 ** min(retry - 1, 10))


async def test_the_connection_is_given_back_while_backing_off(scripted: Any, refused: Any, clock: Any) -> None:
    model, api = scripted(refused("rate_limit"), "fine")
    held: list[int] = []

    async def look() -> None:
        held.append(gate_of(api.key, 20).held)

    clock.while_asleep = look

    await model.generate("?")

    assert held == [0]
    assert gate_of(api.key, 20).held == 0


async def test_an_attempt_without_an_answer_is_retried(scripted: Any) -> None:
    model, api = scripted(anyio.sleep_forever, "fine")

    output = await model.generate("?", config=GenerateConfig(attempt_timeout=0.02))

    assert output.completion == "fine"
    assert len(api.inputs) == 2


async def test_attempts_that_all_time_out_say_so(scripted: Any) -> None:
    model, api = scripted(anyio.sleep_forever)

    with pytest.raises(AttemptTimeout, match=r"test/scripted: no answer within 0\.02 s of sending") as raised:
        await model.generate("?", config=GenerateConfig(attempt_timeout=0.02, max_retries=2))

    assert len(api.inputs) == 3
    assert isinstance(raised.value, TimeoutError)


async def test_the_timeout_of_a_call_cuts_an_attempt_short(scripted: Any) -> None:
    model, api = scripted(anyio.sleep_forever)

    with pytest.raises(GenerateTimeout, match=r"within the timeout of 0\.02 s"):
        await model.generate("?", config=GenerateConfig(timeout=0.02))

    assert len(api.inputs) == 1


async def test_the_timeout_of_a_call_includes_the_waits_between_attempts(
    scripted: Any, refused: Any, clock: Any
) -> None:
    model, api = scripted(refused("rate_limit", 40.0))

    with pytest.raises(
        GenerateTimeout, match=r"ends before the next retry, 40\.0 s from now; the last error was Refused"
    ):
        await model.generate("?", config=GenerateConfig(timeout=100.0))

    assert len(api.inputs) == 3
    assert clock.slept == [40.0, 40.0]


async def test_the_wait_for_a_connection_is_not_part_of_the_timeout(scripted: Any, clock: Any) -> None:
    model, api = scripted("fine")
    gate = gate_of(api.key, 1)
    await gate.acquire()

    async def later() -> None:
        await anyio.wait_all_tasks_blocked()
        clock.now += 1000
        gate.release()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(later)
        output = await model.generate("?", config=GenerateConfig(timeout=10.0, attempt_timeout=10.0))

    assert output.completion == "fine"
    assert output.time == 0


async def test_waits_are_not_working_time(scripted: Any, refused: Any, clock: Any) -> None:
    async def slow_refusal() -> None:
        clock.now += 5
        raise refused("transient")

    async def slow_answer() -> str:
        clock.now += 3
        return "fine"

    model, api = scripted(slow_refusal, slow_answer)
    gate = gate_of(api.key, 1)
    await gate.acquire()

    async def later() -> None:
        await anyio.wait_all_tasks_blocked()
        clock.now += 100
        gate.release()

    limits = SampleLimits(clock=lambda: clock.now)
    with use_limits(limits):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(later)
            output = await model.generate("?")

    assert limits.working_time() == 3
    assert output.time == 3


async def test_calls_that_fail_side_by_side_are_one_wait(scripted: Any, refused: Any, clock: Any) -> None:
    async def refusal_after_five_seconds() -> None:
        await anyio.wait_all_tasks_blocked()
        clock.now = max(clock.now, 1005.0)
        raise refused("transient")

    model, api = scripted(*[refusal_after_five_seconds] * 10, "fine")
    clock.chance = 0.0
    limits = SampleLimits(clock=lambda: clock.now)
    with use_limits(limits):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(model.generate, "?")

    assert len(api.inputs) == 20
    assert limits.elapsed() == limits.waiting == 5
    assert limits.working_time() == 0


async def test_a_permanent_failure_and_a_cancelled_call_are_work(scripted: Any, refused: Any, clock: Any) -> None:
    async def refusal() -> None:
        clock.now += 5
        raise refused("permanent")

    async def cancelled() -> None:
        clock.now += 2
        await anyio.sleep_forever()

    model, _ = scripted(refusal, cancelled)
    limits = SampleLimits(clock=lambda: clock.now)
    with use_limits(limits):
        with pytest.raises(Exception, match="refused"):
            await model.generate("?")
        with anyio.move_on_after(0.01):
            await model.generate("?")
    with limits.pause():
        clock.now += 3

    assert (limits.working_time(), limits.waiting) == (7, 3)


async def test_a_cancelled_call_gives_its_connection_back(scripted: Any) -> None:
    model, api = scripted(anyio.sleep_forever)

    with anyio.move_on_after(0.01):
        await model.generate("?")

    assert gate_of(api.key, 20).held == 0


async def test_a_provider_that_fails_over_a_failure_fails_the_call_with_the_failure(
    scripted: Any, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, api = scripted(refused("transient"))
    monkeypatch.setattr(api, "classify", lambda error: 1 / 0)

    with pytest.raises(Exception, match="refused") as raised:
        await model.generate("?")

    assert len(api.inputs) == 1
    assert "could not say what this means: ZeroDivisionError" in raised.value.__notes__[0]
    assert gate_of(api.key, 20).held == 0


async def test_headers_that_the_provider_cannot_read_fail_no_answer(
    scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, api = scripted("fine")
    monkeypatch.setattr(api, "limits", lambda headers: 1 / 0)

    assert (await model.generate("?")).completion == "fine"


async def test_who_waits_for_the_pace_holds_no_connection(scripted: Any, clock: Any) -> None:
    """Given one request a second: a second one waits for that, and its place is free for what may leave."""
    model, _ = scripted("fine")
    _, line = model.connections()
    line.pacer = RequestPacer(max_rpm=60, now=lambda: clock.now)
    seen: list[tuple[int, int, str]] = []

    async def look() -> None:
        seen.append((line.gate.held, line.paced, current.operation().kind))

    clock.while_asleep = look
    for _ in range(2):
        current = Generation(model, [ChatMessageUser(content="?")], [], "auto", GenerateConfig(), None)
        await current.run()

    assert seen == [(0, 1, "pace")]
    assert clock.slept == [1.0]
    assert (line.gate.held, line.paced) == (0, 0)


async def test_who_is_cancelled_while_it_waits_for_the_pace_leaves_no_trace(scripted: Any, clock: Any) -> None:
    model, _ = scripted("fine")
    _, line = model.connections()
    line.pacer = RequestPacer(max_rpm=60, now=lambda: clock.now)
    await model.generate("?")
    clock.while_asleep = anyio.sleep_forever

    with anyio.move_on_after(0.01) as scope:
        await model.generate("?")

    assert scope.cancelled_caught
    assert (line.gate.held, line.gate.waiting, line.paced) == (0, 0, 0)
