"""Which unit runs next: a free place goes to the model with the fewest live units, ties in plan order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import anyio

from proctor.engine._unit import Unit

__all__ = ["run_units"]


async def run_units(units: Sequence[Unit], max_tasks: int, run: Callable[[int], Awaitable[None]]) -> None:
    """Run all units, at most ``max_tasks`` at once.

    Args:
        units: in plan order.
        max_tasks: how many may be alive.
        run: runs the unit at an index; it does not raise for what went wrong inside the unit.
    """
    waiting = list(range(len(units)))
    live: Counter[str] = Counter()
    ended = anyio.Event()

    async def one(index: int) -> None:
        nonlocal ended
        try:
            await run(index)
        finally:
            live[units[index].model.name] -= 1
            ended.set()
            ended = anyio.Event()

    async with anyio.create_task_group() as tasks:
        while waiting:
            if live.total() >= max_tasks:
                await ended.wait()
                continue
            index = min(waiting, key=lambda candidate: (live[units[candidate].model.name], candidate))
            waiting.remove(index)
            live[units[index].model.name] += 1
            tasks.start_soon(one, index)
