"""Samples that never wait leave the event loop to others often enough, however many of them run at once."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from engine_runs import sums

from proctor import Task, eval_async
from proctor.solver import Generate, Solver, TaskState, solver

pytestmark = pytest.mark.anyio

SAMPLE = 0.001  # seconds of the clock that the workers look at


@pytest.mark.parametrize(("at_once", "a_round"), [(1, 3), (5, 15), (100, 100)])
async def test_workers_keep_the_loop_for_a_few_samples_each_or_for_one_where_they_are_many(
    at_once: int, a_round: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = 0

    @solver
    def immediate() -> Solver:
        async def solve(state: TaskState, _generate: Generate) -> TaskState:
            nonlocal done
            done += 1
            return state

        return solve

    clock = SimpleNamespace(monotonic=lambda: done * SAMPLE, time=lambda: 0.0)
    monkeypatch.setattr("proctor.engine._run_unit.time", clock)
    seen = [0]

    async def watch() -> None:
        while True:
            await anyio.lowlevel.checkpoint()
            seen.append(done)

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        task = Task(dataset=sums(600), solver=immediate())
        [log] = await eval_async(task, model="mock/model", max_samples=at_once, log_dir=str(tmp_path), display="none")
        group.cancel_scope.cancel()

    assert (log.status, done) == ("success", 600)
    # trio shuffles whose turn it is: the watch may come first in one round, and last in the next.
    assert max(after - before for before, after in pairwise(seen)) <= 2 * a_round
