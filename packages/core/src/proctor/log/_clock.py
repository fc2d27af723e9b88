"""Wall-clock timestamps as the format has them."""

from __future__ import annotations

import time
from datetime import UTC, datetime

__all__ = ["now_iso", "now_iso_seconds"]

_THREE = [f"{number:03d}" for number in range(1000)]
_current: tuple[int, str] = (0, "")


def now_iso() -> str:
    """The time in UTC, to the microsecond: ``2026-11-29T11:19:31.783216+00:00``."""
    # The text of the current second is kept: an event must cost about a microsecond, and isoformat() alone takes one.
    global _current
    second, micro = divmod(time.time_ns() // 1000, 1_000_000)
    known, text = _current  # one tuple, so that threads never pair a second with another's text
    if second != known:
        text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S.")
        _current = (second, text)
    # Looked up, not formatted: a number in a format of its own costs as much as all the rest.
    return f"{text}{_THREE[micro // 1000]}{_THREE[micro % 1000]}+00:00"


def now_iso_seconds() -> str:
    """The time in UTC, to the second, as ``eval.created`` and ``stats`` have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00")
