"""A fake server whose answers are held back, by a proxy before it: whatever the server can do, if it speaks HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from proctor_testkit._fault_proxy import FaultProxy

__all__ = ["HeldServer", "held"]

PATIENCE = 15.0
"""Seconds for which answers are held; only a component at fault waits for so long."""


class HeldServer:
    """Requests wait before a server until they are released, or until the first of them has waited for ``PATIENCE``.

    Attributes:
        base_url: the server's, by way of here.
        arrived: how many requests came while answers were held.
    """

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.arrived = 0
        self._changed = threading.Condition()
        self._released = threading.Event()

    def hold(self, method: str, path: str) -> None:
        """Hold a request back; called in a thread of its own."""
        with self._changed:
            self.arrived += not self._released.is_set()
            self._changed.notify_all()
        if not self._released.wait(PATIENCE):
            self._released.set()  # a loop that is blocked can release nothing: the check must end, and fail

    def wait(self, count: int) -> bool:
        """Block until ``count`` requests wait here; False when they did not come while answers were held."""
        with self._changed:
            return self._changed.wait_for(lambda: self.arrived >= count, PATIENCE)

    def release(self) -> None:
        """Hold nothing any more."""
        self._released.set()


@contextmanager
def held(base_url: str) -> Iterator[HeldServer]:
    """The server at ``base_url``, with its answers held back."""
    with FaultProxy(base_url) as proxy:
        server = HeldServer(urlsplit(base_url)._replace(netloc=urlsplit(proxy.base_url).netloc).geturl())
        proxy.on_request = server.hold
        try:
            yield server
        finally:
            server.release()
