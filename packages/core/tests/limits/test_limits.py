from __future__ import annotations

import anyio
import pytest

from proctor.limits import LimitExceededError, SampleLimits, sample_limits, use_limits
from proctor.schema import ModelUsage

pytestmark = pytest.mark.anyio


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_usage_adds_up_by_model_and_role_and_ends_at_the_token_limit() -> None:
    limits = SampleLimits(token_limit=100)
    limits.record_usage("m", "grader", ModelUsage(input_tokens=50, output_tokens=10, total_tokens=60))
    with pytest.raises(LimitExceededError) as raised:
        limits.record_usage("m", None, ModelUsage(input_tokens=50, output_tokens=10, total_tokens=60))
    assert (raised.value.type, raised.value.value, raised.value.limit) == ("token", 120, 100)
    assert limits.model_usage["m"].total_tokens == 120
    assert limits.role_usage["grader"].total_tokens == 60


def test_the_cost_limit_counts_only_what_has_a_price() -> None:
    limits = SampleLimits(cost_limit=1.0)
    limits.record_usage("m", None, ModelUsage(total_tokens=10))
    limits.record_usage("m", None, ModelUsage(total_tokens=10, total_cost=0.9))
    with pytest.raises(LimitExceededError, match="cost"):
        limits.record_usage("m", None, ModelUsage(total_tokens=10, total_cost=0.2))


def test_messages_and_turns() -> None:
    limits = SampleLimits(message_limit=3, turn_limit=1)
    limits.check_messages(2)
    with pytest.raises(LimitExceededError, match="message"):
        limits.check_messages(3)
    limits.begin_turn(1)
    with pytest.raises(LimitExceededError, match="turn"):
        limits.begin_turn(1)


def test_waiting_is_not_working_and_overlapping_waits_count_once() -> None:
    clock = Clock()
    limits = SampleLimits(clock=clock)
    clock.now += 5
    with limits.pause():
        clock.now += 3
        with limits.pause():
            clock.now += 2
        assert limits.working_time() == 5
    clock.now += 1
    assert (limits.waiting, limits.working_time(), limits.elapsed()) == (5, 6, 11)


async def test_the_time_limit_cancels_what_runs_inside() -> None:
    limits = SampleLimits(time_limit=0.01)
    with pytest.raises(LimitExceededError) as raised, limits.enforce():
        await anyio.sleep_forever()
    assert raised.value.type == "time"


async def test_the_working_limit_stands_still_while_waiting() -> None:
    limits = SampleLimits(working_limit=0.01)
    with pytest.raises(LimitExceededError) as raised, limits.enforce():
        with limits.pause():
            await anyio.wait_all_tasks_blocked()
            assert limits.armed[0].scope.deadline == float("inf")
        await anyio.sleep_forever()
    assert raised.value.type == "working"


async def test_a_failed_request_gives_its_time_back_to_the_working_limit() -> None:
    limits = SampleLimits(working_limit=1000)
    with limits.enforce():
        [armed] = limits.armed
        before = armed.scope.deadline
        request = limits.request_sent()
        await anyio.sleep(0.01)
        limits.request_ended(request, failed=True)
        assert armed.scope.deadline > before


async def test_a_busy_branch_keeps_the_working_limit_armed_while_another_one_waits() -> None:
    limits = SampleLimits(working_limit=1000)
    with limits.enforce():
        [armed] = limits.armed
        request = limits.request_sent()
        with limits.pause():
            assert armed.scope.deadline < float("inf")
            limits.request_ended(request)
            assert armed.scope.deadline == float("inf")
        assert armed.scope.deadline < float("inf")


async def test_limits_belong_to_the_sample_that_runs() -> None:
    assert sample_limits() is None
    limits = SampleLimits()
    with use_limits(limits):
        assert sample_limits() is limits
    assert sample_limits() is None
