"""A place at a gate, for which waiting is no work of the sample."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from proctor.concurrency import Gate
from proctor.limits import sample_limits

__all__ = ["held"]


@asynccontextmanager
async def held(gate: Gate | None) -> AsyncIterator[None]:
    """Hold a place at ``gate`` inside; the working clock of the sample stands still until there is one.

    Args:
        gate: ``None`` = nothing is limited.
    """
    if gate is None:
        yield
        return
    if not gate.try_acquire():
        limits = sample_limits()
        with contextlib.nullcontext() if limits is None else limits.pause():
            await gate.acquire()
    try:
        yield
    finally:
        gate.release()
