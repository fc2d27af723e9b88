from __future__ import annotations

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
