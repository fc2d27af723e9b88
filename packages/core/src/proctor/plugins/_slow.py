"""A word about what takes long, while it does: a hang without one looks like a fault of the core."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 3.0  # seconds


@contextmanager
def said_when_slow(text: str, say: Callable[[str], object] | None = None) -> Iterator[None]:
    """Say ``text`` once the block has taken 3 seconds.

    Args:
        text: a sentence.
        say: called on another thread; by default it is written to standard error, as a warning.
    """
    timer = threading.Timer(PATIENCE, say or _warn, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        # Its thread lives for an instant more, and whoever counts threads afterwards would take it for a leak. Not for
        # long: it may be within ``say``, which may wait for what this very thread holds.
        if threading.current_thread() is not timer:
            timer.join(PATIENCE)


def _warn(text: str) -> None:
    sys.stderr.write(f"Warning: {text}\n")
    sys.stderr.flush()
