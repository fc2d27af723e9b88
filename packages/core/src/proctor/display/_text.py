"""How numbers, times and counts are written on every screen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from proctor.contracts import UnitSnapshot

__all__ = [
    "counts",
    "duration",
    "headline",
    "number",
    "plural",
    "retries",
    "retry_parts",
    "shorten",
    "titled",
    "tokens",
]


_LONGEST_CAUSE = 160  # characters


def duration(seconds: float) -> str:
    """``0:07``, ``12:34`` or ``1:02:03``."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def tokens(count: int) -> str:
    """``950``, ``12.3k`` or ``4.56M``."""
    if count < 1_000:
        return str(count)
    if count < 999_950:
        return f"{count / 1_000:.1f}k"
    return f"{count / 1_000_000:.2f}M"


def number(value: float) -> str:
    """A metric with three decimals, or as many significant digits as a large or tiny one needs."""
    if isinstance(value, bool) or not math.isfinite(value):
        return str(value).lower()
    if value == int(value) and abs(value) >= 10:
        return f"{int(value):,}"
    if value and not 0.0005 <= abs(value) < 10_000:
        return f"{value:.3g}"
    return f"{value:.3f}"


def headline(metrics: Sequence[tuple[str, float]], most: int = 4) -> list[tuple[str, float]]:
    """The running metrics worth a place on one line: standard errors are for the end."""
    shown = [(label, value) for label, value in metrics if not label.rpartition("/")[2].endswith("stderr")]
    return shown[:most]


def plural(count: int, noun: str) -> str:
    """``1 error``, ``2,000 errors``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def retries(count: int, cause: str = "", *, noun: bool = True) -> str:
    """``12 retries (connection refused)``: how many requests were repeated, and the latest reason."""
    said = plural(count, "retry") if noun else f"{count:,}"
    reason = " ".join(cause.split())
    if len(reason) > _LONGEST_CAUSE:
        reason = f"{reason[:_LONGEST_CAUSE]}…"
    return f"{said} ({reason})" if reason else said


def retry_parts(units: Sequence[UnitSnapshot]) -> list[str]:
    """The retries of all units, one text for each cause, the most frequent first."""
    causes: Counter[str] = Counter()
    for unit in units:
        causes[unit.retry_cause] += unit.retries
    return [retries(count, cause) for cause, count in causes.most_common() if count]


def titled(unit: UnitSnapshot) -> str:
    """The task with what tells it from its namesakes: ``capitals temperature=0.2``."""
    return f"{unit.name} {unit.label}" if unit.label else unit.name


def counts(kinds: Mapping[str, int], most: int = 4) -> str:
    """``TimeoutError 3, ValueError 1``, the most frequent first."""
    ranked = sorted(((kind, count) for kind, count in kinds.items() if count), key=lambda pair: (-pair[1], pair[0]))
    shown = [f"{kind} {count:,}" for kind, count in ranked[:most]]
    if len(ranked) > most:
        shown.append(plural(len(ranked) - most, "other kind"))
    return ", ".join(shown)


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters, its middle left out: both ends of a path or a model's name tell."""
    if len(text) <= width:
        return text
    if width < 5:
        return text[: max(0, width)]
    head = (width - 1) // 3
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
