"""A server of the standard library that answers in a thread while a test goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer

__all__ = ["serving"]


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """Let it answer until the block ends, then close it."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()
