"""What a sample does is on record while it lasts, in all of its branches, and not a moment longer."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest

from proctor.concurrency import Gate, subprocess
from proctor.monitor import (
    Activity,
    activity,
    begin_activity,
    doing,
)

pytestmark = pytest.mark.anyio


def _now(doer: Activity) -> list[tuple[str, str]]:
    return [(each.kind, each.what) for each in doer.operations()]


async def test_outside_of_a_sample_nothing_is_recorded() -> None:
    assert activity() is None
    with doing("tool", "bash"):
        assert activity() is None


async def test_parallel_branches_show_an_operation_each() -> None:
    doer = Activity("a", 1)
    gate = Gate("my-api", 1)
    end = anyio.Event()

    async def tool() -> None:
        with doing("tool", "search"):
            await end.wait()

    async def visit() -> None:
        async with gate:
            await end.wait()

    begin_activity(doer)
    async with anyio.create_task_group() as tasks:
        for branch in (tool, visit, visit):
            tasks.start_soon(branch)
        await anyio.wait_all_tasks_blocked()
        assert sorted(_now(doer)) == [("gate", "my-api"), ("tool", "search")]
        end.set()
    assert _now(doer) == []


@pytest.mark.parametrize("cancel", [False, True])
async def test_an_operation_that_fails_or_is_cancelled_is_over(cancel: bool) -> None:
    doer = Activity("a", 1)
    begin_activity(doer)
    with anyio.CancelScope() as scope, suppress(RuntimeError), doing("sandbox", "exec true"):
        assert doer.running
        if cancel:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
        raise RuntimeError("broken")
    assert not doer.running


async def test_a_command_is_an_operation() -> None:
    doer = Activity("a", 1)
    begin_activity(doer)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(subprocess, ["sleep", "60"])
        with anyio.fail_after(60):
            while not doer.running:  # noqa: ASYNC110 - a process starts
                await anyio.sleep(0.01)
        assert _now(doer) == [("subprocess", "sleep 60")]
        tasks.cancel_scope.cancel()
    assert not doer.running
