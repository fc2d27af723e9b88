"""Runs in the peer's Python: a task that answers its first samples and then waits to be killed."""

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import includes
from inspect_ai.solver import solver


@solver
def answers(until):
    async def solve(state, generate):
        if state.sample_id > until:
            await anyio.sleep_forever()
        word = "Default" if state.sample_id % 3 else "nothing"
        state.output = ModelOutput.from_content("mockllm/model", word)
        return state

    return solve


@task
def some(until: int):
    samples = [Sample(input=f"q{n}", target="Default", id=n) for n in range(1, 51)]
    return Task(dataset=samples, solver=answers(until), scorer=includes())
