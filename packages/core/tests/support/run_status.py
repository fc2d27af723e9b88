"""What runs that a test has started tell of themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from proctor.monitor import ask, run_sockets

__all__ = ["ask_run", "the_socket", "until"]

_PATIENCE = 60  # seconds

T = TypeVar("T")


def until(look: Callable[[], T | None]) -> T:
    """Look again and again until there is something to see."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if seen := look():
            return seen
        time.sleep(0.02)
    raise AssertionError("it never came")


def the_socket() -> Path:
    """The socket of the only run in this runtime folder."""
    [path] = until(lambda: list(run_sockets()))
    return path


def ask_run(**question: Any) -> dict[str, Any]:
    """Put a question to the only run in this runtime folder."""
    return ask(the_socket(), question)
