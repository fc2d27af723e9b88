"""Work that doesn't stop when it is told to: it is left where it stands, and the loop ends all the same."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from proctor.concurrency import Detached, detached_tasks

pytestmark = pytest.mark.anyio

_steps: list[str] = []
_where: ContextVar[str] = ContextVar("where", default="nowhere")


@pytest.fixture(autouse=True)
def steps() -> list[str]:
    _steps.clear()
    return _steps


@pytest.fixture
def blocked() -> Iterator[Callable[[], object]]:
    """Blocks a thread until the test is over."""
    over = threading.Event()
    yield lambda: over.wait(60)
    over.set()


async def swallows() -> None:
    while True:
        try:
            await anyio.sleep(3600)
        except BaseException:
            _steps.append("swallowed")


async def shielded() -> None:
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()


async def in_a_group() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(shielded_for_a_while)
        await swallows()


async def shielded_for_a_while() -> None:
    await anyio.sleep_forever()


@pytest.mark.parametrize("work", [swallows, shielded, in_a_group])
async def test_what_ignores_its_cancellation_is_abandoned(work: Callable[[], Awaitable[None]]) -> None:
    with anyio.fail_after(30):
        async with detached_tasks():
            task = Detached(work)  # type: ignore[arg-type]  # a coroutine function
            await anyio.wait_all_tasks_blocked()

            assert not await task.stop(0.05)

            assert task.abandoned
            taken = len(_steps)
            await anyio.sleep(0.02)
            assert len(_steps) == taken  # it takes no further step


async def test_a_thread_that_never_returns_holds_nothing_up(blocked: Callable[[], object]) -> None:
    async def blocks() -> None:
        await to_thread.run_sync(blocked)

    with anyio.fail_after(30):
        async with detached_tasks():
            task = Detached(blocks)
            await anyio.wait_all_tasks_blocked()
            assert not await task.stop(0.05)


async def test_what_it_waited_for_may_come_later() -> None:
    event = anyio.Event()

    async def waits() -> None:
        with anyio.CancelScope(shield=True):
            await event.wait()
        _steps.append("went on")

    async with detached_tasks():
        task = Detached(waits)
        await anyio.wait_all_tasks_blocked()
        assert not await task.stop(0.01)
        event.set()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
    assert _steps == []


async def test_what_stops_when_it_is_told_to_is_not_abandoned() -> None:
    async def tidies() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            _steps.append("tidied")

    async with detached_tasks():
        task = Detached(tidies)
        await anyio.wait_all_tasks_blocked()
        assert await task.stop(30)
    assert _steps == ["tidied"]
    assert task.failed is not None


async def test_results_errors_and_context_variables_come_back() -> None:
    async def sets() -> int:
        _where.set("inside")
        await anyio.lowlevel.checkpoint()
        return 7

    async def fails() -> None:
        raise ValueError("no")

    async with detached_tasks():
        task, failing = Detached(sets), Detached(fails)
        assert await task.wait(30)
        assert await failing.wait(30)

    assert task.result() == 7
    assert (task.context[_where], _where.get()) == ("inside", "nowhere")
    with pytest.raises(ValueError, match="no"):
        failing.result()
