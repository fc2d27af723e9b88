"""Limits of a part of a sample: what they count, who raises, what nests, what runs side by side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.limits import (
    Limit,
    LimitExceededError,
    Permit,
    SampleLimits,
    apply_limits,
    cost_limit,
    message_limit,
    sample_limits,
    time_limit,
    token_limit,
    turn_limit,
    use_limits,
    working_limit,
)
from proctor.model import Model, ModelCost, ModelOutput, ModelPrices, get_model, use_prices
from proctor.schema import ChatMessageUser, ModelUsage

pytestmark = pytest.mark.anyio


@pytest.fixture
def model() -> Model:
    """Each answer uses 10 tokens and 0.5 dollars."""

    def reply(*_: Any) -> ModelOutput:
        output = ModelOutput.from_content("model", "x")
        output.usage = ModelUsage(input_tokens=6, output_tokens=4, total_tokens=10, total_cost=0.5)
        return output

    return get_model("mock/model", custom_outputs=reply, memoize=False)


def _priced() -> AbstractContextManager[None]:
    """A price must be known where costs are limited, though here the provider says itself what a call cost."""
    return use_prices(ModelPrices({"mock/*": ModelCost(0, 0)}))


async def test_a_call_that_goes_over_a_token_limit_ends_the_block(model: Model) -> None:
    with pytest.raises(LimitExceededError) as raised, token_limit(15) as limit:
        await model.generate("a")
        assert (limit.usage, limit.remaining) == (10, 5)
        await model.generate("a")

    assert (raised.value.type, raised.value.value, raised.value.limit) == ("token", 20, 15)
    assert raised.value.source is limit


async def test_what_is_used_up_exactly_lets_no_further_request_out(model: Model) -> None:
    with pytest.raises(LimitExceededError, match="reached"), token_limit(10) as limit:
        await model.generate("a")
        await model.generate("a")

    assert limit.usage == 10  # the second was not sent


@pytest.mark.parametrize(("make", "kind"), [(lambda: turn_limit(2), "turn"), (lambda: cost_limit(1.0), "cost")])
async def test_turns_and_costs_are_counted_by_the_call(model: Model, make: Callable[[], Limit], kind: str) -> None:
    with _priced(), pytest.raises(LimitExceededError) as raised, make() as limit:
        for _ in range(3):
            await model.generate("a")

    assert (raised.value.type, raised.value.source) == (kind, limit)
    assert limit.remaining == 0


async def test_the_inner_limit_ends_its_block_and_the_outer_one_has_counted(model: Model) -> None:
    with token_limit(25) as outer:
        with pytest.raises(LimitExceededError) as raised, token_limit(5) as inner:
            await model.generate("a")
        assert raised.value.source is inner
        assert (outer.usage, outer.remaining) == (10, 15)
        await model.generate("a")
    assert outer.usage == 20


async def test_of_two_that_are_out_the_outer_one_is_raised_since_nothing_in_it_can_go_on(model: Model) -> None:
    with pytest.raises(LimitExceededError) as raised, token_limit(5) as outer:
        with apply_limits([token_limit(5)], catch_errors=True):
            await model.generate("a")
        raise AssertionError("not reached")
    assert raised.value.source is outer


async def test_limits_of_the_sample_come_before_those_of_its_parts(model: Model) -> None:
    limits = SampleLimits(token_limit=5)
    with use_limits(limits), pytest.raises(LimitExceededError) as raised, token_limit(5):
        await model.generate("a")
    assert raised.value.source is None


async def test_a_conversation_belongs_to_the_innermost_message_limit(model: Model) -> None:
    talk = [ChatMessageUser(content="b")] * 3
    with message_limit(2):
        with message_limit(4):
            await model.generate(talk)
        with pytest.raises(LimitExceededError, match="message"):
            await model.generate(talk)


async def test_the_time_limit_cancels_the_block() -> None:
    with pytest.raises(LimitExceededError) as raised, time_limit(0.01) as limit:
        await anyio.sleep_forever()
    assert (raised.value.type, raised.value.source) == ("time", limit)
    assert limit.usage >= 0.01


async def test_the_working_limit_stands_still_while_the_sample_waits() -> None:
    limits = SampleLimits()
    with use_limits(limits), pytest.raises(LimitExceededError) as raised, working_limit(0.01) as limit:
        with limits.pause():
            assert limits.armed[0].scope.deadline == float("inf")
        await anyio.sleep_forever()
    assert raised.value.source is limit
    assert not limits.armed


async def test_a_time_limit_may_be_moved_while_it_holds() -> None:
    with time_limit(1000) as limit:
        with suppress(LimitExceededError), time_limit(1000) as inner:
            inner.limit = 0
            await anyio.sleep_forever()
        assert limit.remaining is not None
        assert limit.remaining > 900


async def test_what_a_task_group_wraps_comes_out_as_the_limit_it_is(model: Model) -> None:
    async def ask() -> None:
        await model.generate("a")

    with pytest.raises(LimitExceededError) as raised, token_limit(5) as limit:
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
    assert raised.value.source is limit


async def test_scopes_of_tasks_side_by_side_count_their_own_and_the_outer_one_all(model: Model) -> None:
    used = {}

    async def ask(times: int) -> None:
        with token_limit(100) as own:
            for _ in range(times):
                await model.generate("a")
        used[times] = own.usage

    with token_limit(1000) as outer:
        async with anyio.create_task_group() as group:
            for times in range(1, 6):
                group.start_soon(ask, times)

    assert used == {times: 10 * times for times in range(1, 6)}
    assert outer.usage == 150


async def test_limits_that_are_caught_are_told_of() -> None:
    with apply_limits([time_limit(0.01), turn_limit(9)], catch_errors=True) as scope:
        await anyio.sleep_forever()
    assert scope.limit_error is not None
    assert scope.limit_error.type == "time"


async def test_what_others_raise_is_not_caught() -> None:
    with pytest.raises(LimitExceededError, match="mine"), apply_limits([turn_limit(1)], catch_errors=True):
        raise LimitExceededError("custom", message="mine")


async def test_a_limit_is_good_for_one_block() -> None:
    limit = token_limit(5)
    with limit:
        pass
    with pytest.raises(RuntimeError, match="make a new one"), limit:
        pass
    with limit.copy() as again:
        assert again.limit == 5


@pytest.mark.parametrize("wrong", [-1, float("nan"), True])
def test_what_is_no_limit_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="a token limit is a number"):
        token_limit(wrong)


async def test_a_limit_of_none_counts(model: Model) -> None:
    with token_limit(None) as limit:
        await model.generate("a")
        assert (limit.usage, limit.remaining) == (10, None)


async def test_no_sample_is_left_behind_outside_of_any(model: Model) -> None:
    with token_limit(50):
        assert sample_limits() is not None
        await model.generate("a")
    assert sample_limits() is None


async def test_the_use_of_a_sample_can_be_read(model: Model) -> None:
    with _priced(), use_limits(SampleLimits(token_limit=100, cost_limit=2.0)) as limits:
        await model.generate("a")
        assert (limits.token.usage, limits.token.remaining, limits.cost.remaining) == (10, 90, 1.5)
        assert (limits.turn.usage, limits.turn.limit, limits.turn.remaining) == (1, None, None)
        assert limits.message.usage == 1


async def test_what_is_over_sends_nothing_any_more(model: Model) -> None:
    with use_limits(SampleLimits()) as limits:
        permit = Permit()
        with permit:
            await model.generate("a")
            permit.revoke("the solver was left behind")
            with pytest.raises(LimitExceededError, match="left behind"):
                await model.generate("a")
        await model.generate("a")
    assert limits.tokens == 20


# Whatever nests, and whatever is spent where


def _source(call: Callable[[], None]) -> Limit | None:
    try:
        call()
    except LimitExceededError as error:
        return error.source
    return None


@given(
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=5),
    calls=st.lists(st.integers(0, 30), max_size=6),
)
def test_the_outermost_limit_that_a_call_goes_over_is_the_one_that_is_raised(
    sizes: list[int], calls: list[int]
) -> None:
    with use_limits(SampleLimits()) as limits, ExitStack() as stack:
        nested = [stack.enter_context(token_limit(size)) for size in sizes]
        spent = 0
        for tokens in calls:
            refused = next((limit for limit, size in zip(nested, sizes, strict=True) if spent >= size), None)
            assert _source(lambda: limits.begin_turn(1)) is refused
            if refused is not None:
                continue
            spent += tokens
            over = next((limit for limit, size in zip(nested, sizes, strict=True) if spent > size), None)
            assert _source(partial(limits.record_usage, "m", None, ModelUsage(total_tokens=tokens))) is over
            assert [limit.usage for limit in nested] == [spent] * len(nested)
            assert [limit.remaining for limit in nested] == [max(0, size - spent) for size in sizes]
