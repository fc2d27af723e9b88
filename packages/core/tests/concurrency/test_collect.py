from __future__ import annotations

import anyio
import pytest

from proctor.util import collect

pytestmark = pytest.mark.anyio


async def test_all_run_at_once_and_their_results_keep_the_order() -> None:
    all_there = anyio.Event()
    there = 0

    async def one(name: str) -> str:
        nonlocal there
        there += 1
        if there == 3:
            all_there.set()
        await all_there.wait()
        return name

    with anyio.fail_after(30):
        assert await collect(one("a"), one("b"), one("c")) == ["a", "b", "c"]


async def test_nothing_to_await_is_nothing() -> None:
    assert await collect() == []


async def test_the_first_failure_ends_the_others_and_comes_as_it_was_raised() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("waits")

    async def fails() -> None:
        await anyio.lowlevel.checkpoint()
        raise KeyError("no such page")

    with anyio.fail_after(30), pytest.raises(KeyError, match="no such page"):
        await collect(waits(), fails(), waits())
    assert ended == ["waits", "waits"]


async def test_who_is_cancelled_from_outside_cancels_all() -> None:
    ended: list[int] = []

    async def waits(number: int) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(number)

    with anyio.move_on_after(0.01) as scope:
        await collect(waits(1), waits(2))
    assert scope.cancelled_caught
    assert sorted(ended) == [1, 2]
