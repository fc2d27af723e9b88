"""What is alive is bounded by what may run at once, and not by the size of the dataset."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from proctor import Task
from proctor.dataset import IterableDataset, Sample
from proctor.model import ModelOutput, get_model
from proctor.schema import EvalLog
from proctor.scorer import match
from proctor.solver import Generate, Solver, TaskState, generate, solver

Run = Callable[..., list[EvalLog]]

MILLION = 1_000_000
OTHER_TASKS = 12  # of the run itself: units, gates, the screen's and the watchdog's


class Lazy:
    """A million samples that are made when they are asked for, and counted while somebody keeps them."""

    def __init__(self) -> None:
        self.made = 0
        self.ended = 0
        self.most_alive = 0
        self.most_ahead = 0
        self.most_tasks = 0
        self.alive: dict[int, weakref.ref[Sample]] = {}

    def samples(self) -> Iterator[Sample]:
        for number in range(MILLION):
            sample = Sample(input=f"What is {number} + 0?", target=str(number))
            self.made += 1
            self.alive[number] = weakref.ref(sample, lambda _, number=number: self.alive.pop(number))
            yield sample

    def look(self) -> None:
        self.most_ahead = max(self.most_ahead, self.made - self.ended)
        if self.made % 50 == 0:
            gc.collect(0)
            self.most_alive = max(self.most_alive, len(self.alive))
            self.most_tasks = max(self.most_tasks, len(anyio.get_running_tasks()))


def lazy_task(lazy: Lazy, length: int | None, stop_at: int = MILLION) -> Task:
    @solver
    def watched() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            lazy.look()
            state = await generate(state)
            lazy.ended += 1
            if lazy.ended >= stop_at:
                raise ValueError("enough")
            return state

        return solve

    return Task(dataset=IterableDataset(lazy.samples, length), solver=watched(), scorer=match(), name="lazy")


def slow_model() -> Any:
    async def reply(input: Any, *more: Any) -> ModelOutput:
        await anyio.lowlevel.checkpoint()
        return ModelOutput.from_content("model", "0")

    return get_model("mock/model", custom_outputs=reply, memoize=False)


@pytest.mark.parametrize("length", [MILLION, None])
def test_of_a_million_samples_only_those_that_run_are_alive(run: Run, length: int | None) -> None:
    lazy = Lazy()

    [log] = run(lazy_task(lazy, length), slow_model(), limit=600, max_connections=16, log_samples=False)

    assert log.status == "success", log.error
    assert log.results is not None and log.results.completed_samples == 600
    assert 600 <= lazy.made <= 601
    assert lazy.most_ahead <= 16
    assert lazy.most_alive <= 3 * 16
    assert lazy.most_tasks <= 16 + OTHER_TASKS


def test_a_run_that_ends_early_made_no_more_than_it_ran(run: Run) -> None:
    lazy = Lazy()

    [log] = run(lazy_task(lazy, MILLION, stop_at=200), slow_model(), max_connections=16, log_samples=False)

    assert log.status == "error"
    assert lazy.made <= 200 + 16
    assert lazy.most_tasks <= 16 + OTHER_TASKS


def test_a_sample_is_gone_when_its_unit_is_over(run: Run) -> None:
    lazy = Lazy()

    run(Task(dataset=IterableDataset(lazy.samples), solver=generate()), slow_model(), limit=50, log_samples=False)
    gc.collect()

    assert lazy.made >= 50
    assert lazy.alive == {}
