"""Waits for a child process that end, whatever it does."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["killed_after"]


@contextmanager
def killed_after(child: subprocess.Popen[Any], seconds: float = 60) -> Iterator[None]:
    """Kill ``child`` when the block takes longer: who waits for its output then sees the end of it."""
    timer = threading.Timer(seconds, child.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
