"""Await several things at once, on either back-end."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import anyio

__all__ = ["collect"]

T = TypeVar("T")


async def collect(*awaitables: Awaitable[T]) -> list[T]:
    """Await all of ``awaitables`` at once and return their results, in their order.

    What ``asyncio.gather`` is for, on asyncio and trio alike, with one difference: the first that fails ends the rest,
    and nothing goes on in the background.

    Raises:
        Exception: what the first one that failed raised, as it was, and in no group.

    Example::

        answers = await collect(*[get_model(name).generate(question) for name in graders])
    """
    results: dict[int, T] = {}
    failed: BaseException | None = None

    async def one(place: int, awaitable: Awaitable[T]) -> None:
        nonlocal failed
        try:
            results[place] = await awaitable
        except Exception as error:
            if failed is None:
                failed = error
                tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for place, awaitable in enumerate(awaitables):
            tasks.start_soon(one, place, awaitable)
    if failed is not None:
        raise failed
    return [results[place] for place in range(len(awaitables))]
