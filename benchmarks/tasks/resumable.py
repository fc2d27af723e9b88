"""Short questions from a file; notes when the first one is asked."""

from __future__ import annotations

import os
import time
from pathlib import Path

from proctor import Task, task
from proctor.dataset import json_dataset
from proctor.scorer import match
from proctor.solver import Generate, Solver, TaskState, generate, solver


@solver
def noted() -> Solver:
    async def solve(state: TaskState, ask: Generate) -> TaskState:
        mark = Path(os.environ["RESUME_MARK"])
        if not mark.exists():
            mark.write_text(repr(time.time()))
        return state

    return solve


@task
def resumable(file: str) -> Task:
    """The questions in ``file``, a line of JSON each."""
    return Task(dataset=json_dataset(file), solver=[noted(), generate()], scorer=match())
