"""Ctrl-C and SIGTERM: the first ends the run in an orderly way, the second at once. Ctrl-\\ shows what samples do."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from anyio.lowlevel import current_token

__all__ = ["key_signals", "stop_signals"]

_SHOW_CURSOR = b"\x1b[?25h"
_STDERR = 2  # as it is written past buffers, whose locks the interrupted code may hold


@contextmanager
def stop_signals(note: Callable[[int], None], stop: Callable[[], None], last: Callable[[], str]) -> Iterator[None]:
    """Handle SIGINT and SIGTERM in the code inside; outside the main thread nothing is changed.

    Args:
        note: called at once with the signal's number, even while something blocks the event loop; it must not wait.
        stop: called in the event loop when that comes to it.
        last: the last line for a person when the second signal ends the process; it must not wait.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    token: Any = current_token()
    loop = getattr(token, "native_token", token)  # older versions of anyio give the loop itself
    soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
    received = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if received:
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), _SHOW_CURSOR)
            with suppress(Exception):  # nothing may keep the process from ending
                os.write(_STDERR, f"\n{last()}\n".encode("utf-8", "backslashreplace"))
            os._exit(128 + number)
        received = True
        note(number)
        soon(stop)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def key_signals(pressed: Callable[[], None]) -> Iterator[None]:
    """Call ``pressed`` when a person presses Ctrl-\\ (or Ctrl-T, on systems that have it) in the code inside.

    A terminal makes signals of these keys. So its mode stays as it is, and nothing is read that is meant for others: a
    debugger, ``input()``, the next command. Who has a handler of their own for one of the signals keeps it.

    Args:
        pressed: called at once, even while something blocks the event loop; it must not wait.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    keys = [number for name in ("SIGQUIT", "SIGINFO") if (number := getattr(signal, name, None)) is not None]
    ours = [number for number in keys if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        with suppress(ValueError, OSError):
            signal.signal(number, lambda number, frame: pressed())
    try:
        yield
    finally:
        for number in ours:
            with suppress(ValueError, OSError):
                signal.signal(number, signal.SIG_DFL)
