"""Which unit runs next: a free place goes to the model with the fewest live units, ties in plan order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import anyio

from proctor.concurrency import Gate
from proctor.engine._unit import Unit

__all__ = ["run_units"]


async def run_units(units: Sequence[Unit], tasks: Gate, run: Callable[[int], Awaitable[None]]) -> None:
    """Run all units, as many at once as ``tasks`` lets in.

    Args:
        units: in plan order.
        tasks: how many may be alive; its limit may be changed on the way.
        run: runs the unit at an index; it does not raise for what went wrong inside the unit.
    """
    waiting = list(range(len(units)))
    live: Counter[str] = Counter()

    async def one(index: int) -> None:
        try:
            await run(index)
        finally:
            live[units[index].model.name] -= 1
            tasks.release()

    async with anyio.create_task_group() as group:
        while waiting:
            await tasks.acquire()
            index = min(waiting, key=lambda candidate: (live[units[candidate].model.name], candidate))
            waiting.remove(index)
            live[units[index].model.name] += 1
            group.start_soon(one, index)
