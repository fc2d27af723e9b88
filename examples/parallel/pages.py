"""Ten pages of a web API that takes two requests at a time.

    proctor eval examples/parallel/pages.py --model openai/gpt-5 -T url=https://my-web-api.example/pages

However many samples run, and however many pages each of them asks for: the gate "my-web-api" lets two requests through,
in this run. This is `asyncio`; pages_anyio.py is the same for every back-end.
"""

from __future__ import annotations

import asyncio

import httpx2

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import Generate, Solver, TaskState, generate, solver
from proctor.util import concurrency


@task
def pages(url: str, count: int = 10) -> Task:
    """Questions about what stands on some pages.

    Args:
        url: the address that the pages' numbers are appended to.
        count: how many pages there are.
    """
    return Task(
        dataset=[Sample(input="What is the title of page 7?", target="Page 7")],
        solver=[read_pages(url, count), generate()],
        scorer=includes(),
    )


@solver
def read_pages(url: str, count: int) -> Solver:
    """Put the pages in front of the question."""

    async def read(client: httpx2.AsyncClient, number: int) -> str:
        async with concurrency("my-web-api", 2):
            response = await client.get(f"{url}/{number}")
        response.raise_for_status()
        return response.text

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        async with httpx2.AsyncClient() as client:
            texts = await asyncio.gather(*[read(client, number) for number in range(1, count + 1)])
        state.user_prompt.text = "\n\n".join([*texts, state.user_prompt.text])
        return state

    return solve
