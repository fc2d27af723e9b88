"""Tasks whose code does not stop when it is told to. The patience with it is cut short, so that tests need not wait."""

import threading
import time

import anyio
from anyio import to_thread

from proctor import Task, task
from proctor.dataset import Sample
from proctor.engine import _deadline, _emergency
from proctor.scorer import Score, accuracy, scorer
from proctor.solver import solver

_deadline.GRACE = 0.3
_emergency.GRACE = 0.3
_deadline.SCORING = 0.3
_LONG = 1e6


async def swallows():
    while True:
        try:
            await anyio.sleep(_LONG)
        except BaseException:
            time.sleep(0.001)  # noqa: ASYNC251 - it is told again at once, and would only heat the processor


async def shielded():
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()


async def thread():
    await to_thread.run_sync(threading.Event().wait, _LONG)


async def nested():
    async with anyio.create_task_group() as group:
        group.start_soon(thread)
        await swallows()


async def children():
    """Tasks of its own, which nobody drives by hand, swallow theirs."""
    async with anyio.create_task_group() as group:
        group.start_soon(swallows)


async def loop():
    time.sleep(_LONG)  # noqa: ASYNC251 - this is what it is about


HOW = {each.__name__: each for each in (swallows, shielded, thread, nested, children, loop)}


@solver
def hangs(how):
    async def solve(state, generate):
        state = await generate(state)
        if state.sample_id == 2:
            print("HANGS", flush=True)
            await HOW[how]()
        return state

    return solve


@scorer(metrics=[accuracy()])
def judges(how):
    async def score(state, target):
        if how and state.sample_id == 2:
            print("HANGS", flush=True)
            await HOW[how]()
        return Score(value=1 if state.output.completion else 0)

    return score


@solver
def asks():
    async def solve(state, generate):
        return await generate(state)

    return solve


def tidies(how):
    async def cleanup(state):
        if state.sample_id == 2:
            print("HANGS", flush=True)
            await HOW[how]()

    return cleanup


@task
def hung(how="swallows", time_limit=None, where="solver"):
    samples = [Sample(input="q", id=number) for number in range(1, 4)]
    return Task(
        dataset=samples,
        solver=hangs(how) if where == "solver" else asks(),
        scorer=judges(how if where == "scorer" else ""),
        time_limit=time_limit,
        cleanup=tidies(how) if where == "cleanup" else None,
    )
