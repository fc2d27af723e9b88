"""Requests that are together or are not: what shows that things overlap, without looking at a clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from serving import serving

__all__ = ["Meeting", "PageServer"]

PATIENCE = 30  # seconds that one waits for the others, before all go on and ``met`` stays false
LATENCY = 0.02  # seconds that a page takes


class Meeting:
    """Holds requests back until so many different ones are there at the same time, once.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self.met = False
        self._count = count
        self._there: dict[Hashable, int] = {}
        self._full = asyncio.Event()

    async def attend(self, who: Hashable) -> None:
        """Wait for the others; ``who`` tells requests apart."""
        self._there[who] = self._there.get(who, 0) + 1
        if len(self._there) >= self._count:
            self.met = True
            self._full.set()
        try:
            await asyncio.wait_for(self._full.wait(), PATIENCE)
        except TimeoutError:
            self._full.set()  # who comes later need not wait, too
        finally:
            self._there[who] -= 1
            if not self._there[who]:
                del self._there[who]


class PageServer:
    """A web API with pages ``/1``, ``/2``, ...: ``peak`` is how many requests were there at once, at most.

    Args:
        together: the first answers wait until so many requests are there.
    """

    def __init__(self, together: int) -> None:
        self.together = together
        self.paths: list[str] = []
        self.peak = 0
        self._there = 0
        self._change = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._page))

    @property
    def url(self) -> str:
        """The address before the number of a page."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def _page(self, path: str) -> bytes:
        with self._change:
            self.paths.append(path)
            self._there += 1
            self.peak = max(self.peak, self._there)
            self._change.notify_all()
            self._change.wait_for(lambda: self.peak >= self.together, PATIENCE)
            # One more than there should be needs some time to come, or nobody would see it.
            self._change.wait_for(lambda: self.peak > self.together, LATENCY)
            self._there -= 1
        return f"<title>Page {path.removeprefix('/')}</title>".encode()

    @contextmanager
    def serving(self) -> Iterator[PageServer]:
        """Answer until the block ends."""
        self._server.daemon_threads = True
        with serving(self._server):
            yield self


def _handler(page: Callable[[str], bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page(self.path)
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *text: Any) -> None:
            pass

    return Handler
