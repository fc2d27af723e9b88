from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from proctor.concurrency import Gate
from proctor.engine._schedule import run_units

pytestmark = pytest.mark.anyio


def _units(models: str) -> Any:
    return [SimpleNamespace(model=SimpleNamespace(name=name)) for name in models]


async def test_a_free_place_goes_to_the_model_with_the_fewest_live_units() -> None:
    started: list[int] = []
    ends = [anyio.Event() for _ in range(6)]

    async def run(index: int) -> None:
        started.append(index)
        await ends[index].wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_units, _units("aaabbb"), Gate("tasks", 2), run)
        await anyio.wait_all_tasks_blocked()
        assert sorted(started) == [0, 3]  # trio starts tasks in no fixed order
        ends[3].set()
        await anyio.wait_all_tasks_blocked()
        assert started[2:] == [4]
        ends[0].set()
        await anyio.wait_all_tasks_blocked()
        assert started[2:] == [4, 1]
        for end in ends:
            end.set()
    assert sorted(started) == [0, 1, 2, 3, 4, 5]


async def test_never_more_units_than_allowed() -> None:
    live = most = 0

    async def run(index: int) -> None:
        nonlocal live, most
        live += 1
        most = max(most, live)
        await anyio.lowlevel.checkpoint()
        live -= 1

    await run_units(_units("abcabcabc"), Gate("tasks", 3), run)
    assert (most, live) == (3, 0)


async def test_the_number_may_be_changed_while_units_run() -> None:
    started: list[int] = []
    end = anyio.Event()

    async def run(index: int) -> None:
        started.append(index)
        await end.wait()

    tasks = Gate("tasks", 1)
    async with anyio.create_task_group() as group:
        group.start_soon(run_units, _units("abcd"), tasks, run)
        await anyio.wait_all_tasks_blocked()
        assert started == [0]
        tasks.limit = 3
        await anyio.wait_all_tasks_blocked()
        assert sorted(started) == [0, 1, 2]
        end.set()
    assert sorted(started) == [0, 1, 2, 3]


async def test_a_unit_that_rests_leaves_its_place_and_comes_back_while_others_run() -> None:
    started: list[int] = []
    rests: list[float] = []
    end, rested = anyio.Event(), anyio.Event()

    async def run(index: int) -> float | None:
        started.append(index)
        if index == 0:
            return 30.0 if started.count(0) == 1 else None
        await end.wait()
        return None

    async def sleep(seconds: float) -> None:
        rests.append(seconds)
        await rested.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(partial(run_units, sleep=sleep), _units("aab"), Gate("tasks", 2), run)
        await anyio.wait_all_tasks_blocked()
        # Its place went to the next at once; and when its wait is over it needs a free one.
        assert sorted(started) == [0, 1, 2] and rests == [30.0]
        rested.set()
        await anyio.wait_all_tasks_blocked()
        assert sorted(started) == [0, 1, 2]
        end.set()
    assert sorted(started) == [0, 0, 1, 2]


async def test_a_unit_that_rests_starts_again_though_another_still_runs() -> None:
    started: list[int] = []
    end = anyio.Event()

    async def run(index: int) -> float | None:
        started.append(index)
        if index == 0:
            return 1.0 if started.count(0) < 3 else None
        await end.wait()
        return None

    async def sleep(seconds: float) -> None:
        await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(partial(run_units, sleep=sleep), _units("ab"), Gate("tasks", 2), run)
        await anyio.wait_all_tasks_blocked()
        assert sorted(started) == [0, 0, 0, 1]
        end.set()


async def test_the_last_unit_may_rest_alone() -> None:
    rests: list[float] = []

    async def run(index: int) -> float | None:
        return 5.0 if len(rests) < 2 else None

    async def sleep(seconds: float) -> None:
        rests.append(seconds)

    await run_units(_units("a"), Gate("tasks", 1), run, sleep=sleep)
    assert rests == [5.0, 5.0]
