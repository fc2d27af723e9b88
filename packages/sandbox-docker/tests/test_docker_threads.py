"""Threads whose callers are cancelled: whatever they have made is disposed of, and nobody waits for them twice."""

from __future__ import annotations

import threading

import anyio
import pytest
from anyio import to_thread

from proctor_sandbox_docker._threads import Threads

pytestmark = pytest.mark.anyio
PATIENCE = 10.0


class Thing:
    """A result."""


@pytest.mark.parametrize("fails", [False, True])
async def test_a_result_that_is_there_when_its_caller_is_cancelled_is_disposed_of(fails: bool) -> None:
    threads, made, disposed = Threads("test", 4), Thing(), list[Thing]()
    begun, go = threading.Event(), threading.Event()

    def work() -> Thing:
        begun.set()
        go.wait(PATIENCE)
        if fails:
            raise ValueError("no result")
        return made

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def call() -> None:
                await threads.run(work, dispose=disposed.append)
                raise AssertionError("it was cancelled")

            group.start_soon(call)
            assert await to_thread.run_sync(begun.wait, PATIENCE)
            go.set()
            wait_until_idle(threads)  # the loop is blocked: what the thread tells it is not heard yet
            scope.cancel()

    assert await threads.settle(PATIENCE)
    assert disposed == ([] if fails else [made])


def wait_until_idle(threads: Threads) -> None:
    """Block until the thread has ended its work; it waits for the next then."""
    pause = threading.Event()
    while threads._idle == 0:
        assert not pause.wait(0.001)


async def test_what_was_disposed_of_is_not_kept_until_somebody_settles() -> None:
    threads = Threads("test", 4)
    disposed: list[Thing] = []

    for _ in range(3):
        await leave_behind(threads, disposed)
        with anyio.fail_after(PATIENCE):
            while threads._idle == 0:  # noqa: ASYNC110  # a thread sets no event of the loop
                await anyio.sleep(0.001)

    assert len(disposed) == 3 and len(threads._left) == 1


async def leave_behind(threads: Threads, disposed: list[Thing]) -> None:
    """Cancel a call while its thread goes on, and let that end."""
    begun, go = threading.Event(), threading.Event()

    def work() -> Thing:
        begun.set()
        go.wait(PATIENCE)
        return Thing()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def call() -> None:
                await threads.run(work, dispose=disposed.append)

            group.start_soon(call)
            assert await to_thread.run_sync(begun.wait, PATIENCE)
            scope.cancel()
    go.set()


async def test_what_was_given_up_is_not_waited_for_again() -> None:
    threads, begun, go = Threads("test", 4), threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return go.wait(PATIENCE)

    try:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def call() -> None:
                    await threads.run(work, dispose=lambda _: None)

                group.start_soon(call)
                assert await to_thread.run_sync(begun.wait, PATIENCE)
                scope.cancel()
        assert not await threads.settle(0)
        assert await threads.settle(PATIENCE)
    finally:
        go.set()
