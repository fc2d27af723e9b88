"""The task of the kill tests: every prompt names its sample and epoch, so that the server can count them."""

from __future__ import annotations

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import Generate, Solver, TaskState, generate, solver


@solver
def named() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.user_prompt.text = f"{state.sample_id} {state.epoch} {state.user_prompt.text}"
        return state

    return solve


def _task(first: int, samples: int, epochs: int) -> Task:
    """Questions of uneven length, some of which the server answers wrongly."""
    ids = range(first, first + samples)
    questions = [Sample(id=n, input="why? " * (1 + n % 7 * 40), target="yes") for n in ids]
    return Task(dataset=questions, solver=[named(), generate()], scorer=includes(), epochs=epochs)


@task
def asks(samples: int = 60, epochs: int = 2) -> Task:
    return _task(1, samples, epochs)


@task
def more(samples: int = 60, epochs: int = 2) -> Task:
    """With other ids, so that they say which task a sample is of."""
    return _task(1001, samples, epochs)
