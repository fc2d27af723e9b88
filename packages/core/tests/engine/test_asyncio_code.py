"""Tasks whose code is written for asyncio: it runs there, and on trio the sample's error says what to write instead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from engine_runs import answers, sums

from proctor import Task, eval
from proctor.model import ModelOutput, get_model
from proctor.schema import EvalLog, EvalSample
from proctor.scorer import Score, Scorer, Target, accuracy, match, scorer
from proctor.solver import Generate, Solver, TaskState, generate, solver, use_tools
from proctor.tool import Tool, tool

# What asyncio makes on trio before it notices is never awaited and never closed.
pytestmark = pytest.mark.filterwarnings("ignore")


async def nothing() -> None:
    pass


async def sleeps() -> None:
    await asyncio.sleep(0.001)


async def yields() -> None:
    await asyncio.sleep(0)


async def gathers() -> None:
    await asyncio.gather(nothing(), nothing())


async def starts() -> None:
    await asyncio.create_task(nothing())


async def threads() -> None:
    await asyncio.to_thread(int)


async def waits() -> None:
    async with asyncio.timeout(10):
        await nothing()


async def waits_for() -> None:
    await asyncio.wait_for(nothing(), 10)


CALLS: dict[Callable[[], Awaitable[None]], tuple[str, str]] = {
    sleeps: ("sleep", "anyio.sleep()"),
    yields: ("sleep", "anyio.sleep()"),
    gathers: ("gather", "proctor.util.collect()"),
    starts: ("create_task", "anyio.create_task_group()"),
    threads: ("to_thread", "anyio.to_thread.run_sync()"),
    waits: ("timeout", "anyio.fail_after()"),
    waits_for: ("wait_for", "anyio.fail_after()"),
}


def in_a_solver(call: Callable[[], Awaitable[None]]) -> Task:
    @solver
    def native() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            await call()
            return await generate(state)

        return solve

    return Task(dataset=sums(1), solver=native(), scorer=match())


def in_a_scorer(call: Callable[[], Awaitable[None]]) -> Task:
    @scorer(metrics=[accuracy()])
    def native() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            await call()
            return Score(value=1)

        return score

    return Task(dataset=sums(1), scorer=native())


def in_a_tool(call: Callable[[], Awaitable[None]]) -> Task:
    @tool
    def native() -> Tool:
        async def execute() -> str:
            """Do something."""
            await call()
            return "done"

        return execute

    return Task(dataset=sums(1), solver=[use_tools(native()), generate()], scorer=match())


def model_of(make: Callable[..., Task]) -> Any:
    if make is not in_a_tool:
        return answers()
    replies = [ModelOutput.for_tool_call("model", "native", {}), ModelOutput.from_content("model", "1")]
    return get_model("mock/model", custom_outputs=replies, memoize=False)


def ran(make: Callable[..., Task], call: Callable[[], Awaitable[None]], backend: str, folder: Path) -> EvalSample:
    evaluate: Callable[..., list[EvalLog]] = partial(eval, display="none", log_dir=str(folder), fail_on_error=False)
    [log] = evaluate(make(call), model=model_of(make), async_backend=backend)
    assert log.samples is not None
    return log.samples[0]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("make", [in_a_solver, in_a_scorer, in_a_tool])
def test_on_trio_the_error_names_the_call_its_line_and_what_to_write(
    make: Callable[..., Task], call: Callable[[], Awaitable[None]], tmp_path: Path
) -> None:
    name, instead = CALLS[call]
    error = ran(make, call, "trio", tmp_path).error
    assert error is not None
    assert error.message.startswith(f"AsyncioOnlyError('asyncio.{name} ({__file__}, line ")
    assert f"write {instead}, which runs on both" in error.message
    assert call.__name__ in error.traceback


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("make", [in_a_solver, in_a_scorer, in_a_tool])
def test_on_asyncio_it_runs(make: Callable[..., Task], call: Callable[[], Awaitable[None]], tmp_path: Path) -> None:
    sample = ran(make, call, "asyncio", tmp_path)
    assert sample.error is None
    assert [score.as_float() for score in (sample.scores or {}).values()] == [1]


async def _waits_for_an_event() -> None:
    await asyncio.Event().wait()


async def _own_error() -> None:
    raise RuntimeError("no loop is like this one")


def test_a_lock_that_finds_no_loop_is_named_too(tmp_path: Path) -> None:
    error = ran(in_a_solver, _waits_for_an_event, "trio", tmp_path).error
    assert error is not None and "write anyio.Event, which runs on both" in error.message


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_other_errors_are_what_they_are(backend: str, tmp_path: Path) -> None:
    error = ran(in_a_solver, _own_error, backend, tmp_path).error
    assert error is not None and error.message == "RuntimeError('no loop is like this one')"
