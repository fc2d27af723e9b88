"""Ten pages of a web API that takes two requests at a time, with a task group: for asyncio and trio.

    proctor eval examples/parallel/pages_anyio.py --model openai/gpt-5 -T url=https://my-web-api.example/pages

A task group starts the requests and waits for all of them; one that fails ends the others. It returns no results, so
each request puts its page where it belongs. (`collect()` does that for you: see graders_anyio.py.)
"""

from __future__ import annotations

import anyio
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

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        texts: dict[int, str] = {}

        async def read(client: httpx2.AsyncClient, number: int) -> None:
            async with concurrency("my-web-api", 2):
                response = await client.get(f"{url}/{number}")
            response.raise_for_status()
            texts[number] = response.text

        async with httpx2.AsyncClient() as client, anyio.create_task_group() as requests:
            for number in range(1, count + 1):
                requests.start_soon(read, client, number)
        in_order = [texts[number] for number in sorted(texts)]
        state.user_prompt.text = "\n\n".join([*in_order, state.user_prompt.text])
        return state

    return solve
