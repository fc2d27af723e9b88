"""Which unit runs next: a free place goes to the model with the fewest live units, ties in plan order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import anyio

from proctor.concurrency import Gate
from proctor.engine._unit import Unit

__all__ = ["run_units"]


async def run_units(
    units: Sequence[Unit],
    tasks: Gate,
    run: Callable[[int], Awaitable[float | None]],
    *,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> None:
    """Run all units, as many at once as ``tasks`` lets in.

    Args:
        units: in plan order.
        tasks: how many may be alive; its limit may be changed on the way.
        run: runs the unit at an index; it does not raise for what went wrong inside the unit. What it returns is how
            long the unit rests before it stands in the queue again, in seconds, while others run in its place; ``None``
            when it is over.
        sleep: waits for so many seconds.
    """
    waiting = list(range(len(units)))
    unfinished = len(units)
    live: Counter[str] = Counter()
    changed = anyio.Event()

    async def one(index: int) -> None:
        nonlocal unfinished
        try:
            rest = await run(index)
        finally:
            live[units[index].model.name] -= 1
            tasks.release()
        if rest is not None:
            await sleep(rest)
            waiting.append(index)
        else:
            unfinished -= 1
        changed.set()

    async with anyio.create_task_group() as group:
        while unfinished:
            if not waiting:
                changed = anyio.Event()
                await changed.wait()
                continue
            await tasks.acquire()
            index = min(waiting, key=lambda candidate: (live[units[candidate].model.name], candidate))
            waiting.remove(index)
            live[units[index].model.name] += 1
            group.start_soon(one, index)
