from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.concurrency import (
    Gate,
    Wish,
    concurrency,
    connections,
    gates,
    run_gates,
    subprocess_gate,
)
from proctor.contracts import UsageError

pytestmark = pytest.mark.anyio


async def test_never_more_than_the_limit_are_inside_and_all_get_in() -> None:
    gate = Gate("g", 3)
    inside = done = 0

    async def visit() -> None:
        nonlocal inside, done
        async with gate:
            inside += 1
            assert inside <= 3
            await anyio.lowlevel.checkpoint()
            inside -= 1
            done += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(visit)
    assert (done, gate.held, gate.waiting, gate.peak) == (20, 0, 0, 3)


async def test_waiters_are_served_in_order() -> None:
    gate = Gate("g", 1)
    order: list[int] = []

    async def visit(number: int) -> None:
        async with gate:
            order.append(number)

    await gate.acquire()
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(visit, number)
            await anyio.wait_all_tasks_blocked()
        assert gate.waiting == 5
        gate.release()
    assert order == [0, 1, 2, 3, 4]


async def test_a_cancelled_waiter_leaves_no_trace() -> None:
    gate = Gate("g", 1)
    await gate.acquire()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.acquire)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert gate.waiting == 0
    gate.release()
    assert gate.try_acquire()


async def test_a_place_handed_to_a_waiter_that_is_cancelled_in_the_same_instant_is_given_on() -> None:
    gate = Gate("g", 1)
    await gate.acquire()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.acquire)
        await anyio.wait_all_tasks_blocked()
        gate.release()
        tasks.cancel_scope.cancel()
    assert gate.try_acquire() or gate.held == 1


async def test_raising_the_limit_admits_waiters_and_lowering_it_disturbs_nobody() -> None:
    gate = Gate("g", 1)
    await gate.acquire()
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(gate.acquire)
        await anyio.wait_all_tasks_blocked()
        gate.limit = 3
        await anyio.wait_all_tasks_blocked()
        assert (gate.held, gate.waiting) == (3, 1)
        gate.limit = 1
        assert gate.held == 3
        for _ in range(3):
            gate.release()
    assert gate.held == 1


@given(st.integers(max_value=0))
async def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Gate("g", limit)


async def test_a_named_gate_is_one_and_two_limits_for_it_are_an_error_that_names_both_places() -> None:
    with run_gates():
        assert concurrency("api", 2) is concurrency("api", 2)
        with pytest.raises(UsageError, match=r"(?s)test_gate.py:\d+.*test_gate.py:\d+"):
            concurrency("api", 3)


async def test_each_run_has_gates_of_its_own() -> None:
    with run_gates(max_subprocesses=2):
        first = connections("key", "openai", lambda: Wish(5))
        assert subprocess_gate().limit == 2
        assert {gate.name for gate in gates()} == {"openai", "subprocesses"}
        with run_gates():
            assert connections("key", "openai", lambda: Wish(7)) is not first
        assert connections("key", "openai", lambda: Wish(7)) is first
