"""A provider that counts: who asked for which sample, and whether that was done already."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from proctor_testkit import FakeOpenAI

__all__ = ["CountingServer", "Key"]

Key: TypeAlias = tuple[int, int]
"""Id and epoch of a sample."""

LATENCY = 0.01  # seconds of an answer: the writer commits many times in a run


class CountingServer:
    """Answers the same to the same sample, and counts. A context manager."""

    def __init__(self) -> None:
        self._server = FakeOpenAI()
        self._server.reply(self._reply)
        self.asked: Counter[Key] = Counter()
        """Requests of each sample, since ``fresh``."""
        self.again: list[Key] = []
        """Requests for samples that were done already, since ``fresh``."""
        self._done: frozenset[Key] = frozenset()
        self._since = 0
        self._arrived: Callable[[int], object] = lambda count: None

    @property
    def base_url(self) -> str:
        """The address of the API."""
        return self._server.base_url

    def __enter__(self) -> CountingServer:
        self._server.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._server.__exit__(*exception)

    def fresh(self) -> None:
        """Count from here: another evaluation begins."""
        self.asked, self.again = Counter(), []

    @contextmanager
    def during(self, done: frozenset[Key], arrived: Callable[[int], object] | None = None) -> Iterator[None]:
        """A process asks in the block: for none of ``done``, or it is written down.

        Args:
            done: what was acknowledged before.
            arrived: called with the number of each request of this process, as it comes in.
        """
        self._done, self._since = done, self.asked.total()
        if arrived is not None:
            self._arrived = arrived
        try:
            yield
        finally:
            self._done, self._arrived = frozenset(), lambda count: None

    async def _reply(self, body: dict[str, Any]) -> dict[str, Any]:
        id, epoch = str(body["messages"][-1]["content"]).split()[:2]
        key = int(id), int(epoch)
        self.asked[key] += 1
        if key in self._done:
            self.again.append(key)
        self._arrived(self.asked.total() - self._since)
        await asyncio.sleep(LATENCY)
        luck = zlib.crc32(f"{id} {epoch}".encode()) % 4
        return FakeOpenAI.answer("no. " * (luck * 10) + ("yes" if luck else "no"))
