"""How threads and the event loop wake each other, on both back-ends."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable
from typing import Any

import anyio
from anyio.lowlevel import current_token

__all__ = ["Stop", "Stopped", "waker"]


class Stopped(Exception):
    """What a thread did was ended because nobody waits for it any more."""


class Stop:
    """Ends what a thread does: it waits for sockets, so it is told by one.

    Attributes:
        asked: whether it is to end.
        woken: readable once it is.
    """

    def __init__(self) -> None:
        self.asked = False
        self.woken, self._hand = socket.socketpair()
        self._hand.setblocking(False)
        self.woken.setblocking(False)

    def set(self) -> None:
        """Ask it to end; from any thread."""
        self.asked = True
        with contextlib.suppress(OSError):  # it has ended by itself
            self._hand.send(b"x")

    def wait(self, seconds: float) -> None:
        """Pause, unless it is to end."""
        poll = select.poll()
        poll.register(self.woken, select.POLLIN)
        poll.poll(seconds * 1000)

    def taken(self) -> None:
        """It was heard: what waits for sockets from now on is not woken by it any more."""
        with contextlib.suppress(OSError):
            self.woken.recv(64)

    def close(self) -> None:
        """Give the sockets back."""
        self.woken.close()
        self._hand.close()


def waker() -> tuple[anyio.Event, Callable[[], None]]:
    """An event of the running loop, and what sets it from any thread."""
    event = anyio.Event()
    token: Any = current_token()
    loop = getattr(token, "native_token", token)  # older versions of anyio give the loop itself
    soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone, and nobody waits
            soon(event.set)

    return event, wake
