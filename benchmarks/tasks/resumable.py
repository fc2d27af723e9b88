"""Short questions from a file; notes when the first one is asked."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

from proctor import Task, task
from proctor.dataset import json_dataset
from proctor.scorer import match
from proctor.solver import Generate, Solver, TaskState, generate, solver


@solver
def noted() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        _note()
        return state

    return solve


@cache
def _note() -> None:
    Path(os.environ["RESUME_MARK"]).write_text(repr(time.time()))


@task
def resumable(file: str) -> Task:
    """The questions in ``file``, a line of JSON each."""
    return Task(dataset=json_dataset(file), solver=[noted(), generate()], scorer=match())
