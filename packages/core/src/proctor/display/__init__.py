"""What a screen implements, and the screens that come with the core: none, plain and rich."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from proctor.contracts import (
    Display,
    GateSnapshot,
    MetricSnapshot,
    RunSnapshot,
    SampleSnapshot,
    UnitSnapshot,
)

if TYPE_CHECKING:
    from proctor.display._advice import stopped_text
    from proctor.display._none import NoneDisplay
    from proctor.display._place import error_place, error_text
    from proctor.display._plain import PlainDisplay, write_line
    from proctor.display._report import report_text, score_text
    from proctor.display._results import failed_metrics, stale_metrics, unit_from_log
    from proctor.display._rich import RichDisplay
    from proctor.display._text import duration, plural, tokens
    from proctor.display._waits import operation_text

__all__ = [
    "Display",
    "GateSnapshot",
    "MetricSnapshot",
    "NoneDisplay",
    "PlainDisplay",
    "RichDisplay",
    "RunSnapshot",
    "SampleSnapshot",
    "UnitSnapshot",
    "default_display",
    "duration",
    "error_place",
    "error_text",
    "failed_metrics",
    "none_display",
    "operation_text",
    "plain_display",
    "plural",
    "report_text",
    "rich_display",
    "score_text",
    "stale_metrics",
    "stopped_text",
    "tokens",
    "unit_from_log",
    "write_line",
]

# rich takes as long to import as all of the core, and a run in CI never shows it.
_HOME = {
    "NoneDisplay": "_none",
    "PlainDisplay": "_plain",
    "RichDisplay": "_rich",
    "duration": "_text",
    "error_place": "_place",
    "error_text": "_place",
    "operation_text": "_waits",
    "plural": "_text",
    "report_text": "_report",
    "score_text": "_report",
    "failed_metrics": "_results",
    "stale_metrics": "_results",
    "stopped_text": "_advice",
    "tokens": "_text",
    "unit_from_log": "_results",
    "write_line": "_plain",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"proctor.display.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'proctor.display' has no attribute {name!r}")


def _can_draw(stream: TextIO | None) -> bool:
    """Whether lines on ``stream`` can be drawn over: a terminal that is not dumb and knows Unicode."""
    try:
        terminal = stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
    encoding = (getattr(stream, "encoding", None) or "").lower().replace("-", "")
    return terminal and os.environ.get("TERM", "").lower() not in ("dumb", "unknown") and encoding.startswith("utf")


def default_display(stream: TextIO | None = None) -> str:
    """``rich`` when ``stream`` (standard output) is a terminal that can be drawn on, ``plain`` otherwise."""
    return "rich" if _can_draw(stream or sys.stdout) else "plain"


def none_display(args: object = None) -> Display:
    """Make the screen that shows nothing."""
    from proctor.display._none import NoneDisplay

    return NoneDisplay()


def plain_display(args: object = None) -> Display:
    """Make the screen of whole lines."""
    from proctor.display._plain import PlainDisplay

    return PlainDisplay()


def rich_display(args: object = None) -> Display:
    """Make the screen of a terminal; where standard output can't be drawn on, the plain one instead."""
    if not _can_draw(sys.stdout):
        return plain_display()
    from proctor.display._rich import RichDisplay

    return RichDisplay()
