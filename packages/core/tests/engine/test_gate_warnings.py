"""Numbers of things at once that make no sense are warned of before the run, in one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from engine_runs import answers, sums

from proctor import Task
from proctor.dataset import IterableDataset
from proctor.model import Model, get_model
from proctor.schema import EvalLog
from proctor.scorer import match

Run = Callable[..., list[EvalLog]]


@pytest.fixture
def warned(run: Run) -> Callable[..., list[str]]:
    """The warnings of a plan."""

    def plan(tasks: Any, model: Any = None, **options: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(tasks, model or answers(), dry_run=True, **options)
        return [str(each.message) for each in caught]

    return plan


def task(samples: int = 8, **more: Any) -> Task:
    return Task(dataset=sums(samples), scorer=match(), **more)


def tasks(samples: int, **more: Any) -> list[Task]:
    return [task(samples, name=f"task {number}", **more) for number in range(3)]


# Samples


def test_fewer_samples_than_connections_that_were_asked_for(warned: Callable[..., list[str]]) -> None:
    [said] = warned(task(8), max_samples=2, max_connections=4)

    assert said.startswith("--max-samples 2 is less than the 4 connections of 'task'")
    assert "the others stay idle" in said


@pytest.mark.parametrize("options", [{"max_samples": 2}, {"max_samples": 4, "max_connections": 4}])
def test_fewer_samples_are_a_plain_way_to_ask_for_less(warned: Callable[..., list[str]], options: Any) -> None:
    assert warned(task(8), **options) == []


def test_more_samples_than_the_dataset_has(warned: Callable[..., list[str]]) -> None:
    [said] = warned(task(8), max_samples=9)

    assert said == "--max-samples 9 is more than the 8 samples of 'task': it has no effect there"
    assert warned(task(8), max_samples=9, epochs=2) == []


# Tasks


def test_tasks_side_by_side_whose_samples_fill_the_connections(warned: Callable[..., list[str]]) -> None:
    [said] = warned(tasks(8), max_tasks=3, max_connections=8)

    assert said == (
        "--max-tasks 3 makes nothing faster here: the samples of one task keep the connections to mock/model busy, "
        "which its tasks share; leave --max-tasks out, or raise --max-connections"
    )


def test_samples_of_unknown_number_fill_them_too(warned: Callable[..., list[str]]) -> None:
    endless = [Task(dataset=IterableDataset(lambda: sums(8)), name=name) for name in ("a", "b")]

    assert len(warned(endless, max_tasks=2, max_connections=4)) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"max_connections": 9, "max_tasks": 3},  # a task has fewer samples than there are connections
        {"max_connections": 4, "max_tasks": 1},
        {"max_connections": 4},  # nobody asked for it
        {"max_connections": 4, "max_tasks": 3, "sandbox": "local"},  # samples do other things, too
    ],
)
def test_tasks_side_by_side_that_may_help(warned: Callable[..., list[str]], options: dict[str, Any]) -> None:
    assert warned(tasks(8), **options) == []


def test_samples_that_were_held_back_leave_room_for_other_tasks(warned: Callable[..., list[str]]) -> None:
    said = warned(tasks(8), max_tasks=3, max_connections=4, max_samples=2)

    assert not [text for text in said if "--max-tasks" in text]


def test_a_limit_that_moves_counts_by_its_end(warned: Callable[..., list[str]]) -> None:
    moving = Model(answers().api, name="mock/model", adaptive=True)

    assert len(warned(tasks(8), moving, max_tasks=3, adaptive_connections=8)) == 1
    assert warned(tasks(8), moving, max_tasks=3, adaptive_connections=9) == []


def test_models_with_connections_of_their_own_are_no_crowd(warned: Callable[..., list[str]]) -> None:
    models = [get_model(f"mock/{name}", base_url=f"http://{name}.test", memoize=False) for name in "ab"]

    assert warned(task(8), models, max_tasks=2, max_connections=4) == []
    assert len(warned(tasks(8), models, max_tasks=3, max_connections=4)) == 1
