"""What the rich screen shows while a run is on: a line for each unit and a foot for the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from proctor.contracts import RunSnapshot, SampleSnapshot, UnitSnapshot
from proctor.display._gates import GateTrends
from proctor.display._pace import Pace
from proctor.display._text import counts, duration, headline, number, plural, retry_parts, shorten, tokens

__all__ = ["live_view"]

_STYLE: Mapping[str, str] = {
    "waiting": "dim",
    "running": "",
    "scoring": "",
    "done": "green",
    "error": "red",
    "cancelled": "yellow",
}
_GAP = 2  # columns between two columns
_GAP_TEXT = " " * _GAP
_LEAST = 6  # columns below which a name says nothing
_ORDER = ("running", "scoring", "error", "waiting", "cancelled", "done")  # who stays when there is no room for all


def live_view(
    snapshot: RunSnapshot, paces: Mapping[int, Pace], gates: GateTrends, width: int, height: int
) -> RenderableType:
    """The frame for a terminal of ``width`` x ``height`` characters; what does not fit is left out and counted."""
    room = max(1, height - 5)
    if snapshot.samples is not None:
        room = max(1, min(len(snapshot.units), room // 2))
    places = _visible(snapshot.units, room)
    parts: list[RenderableType] = [_unit_table(snapshot, places, paces, width)]
    hidden = Counter(unit.status for place, unit in enumerate(snapshot.units) if place not in places)
    if hidden:
        more = ", ".join(f"{count} {status}" for status, count in hidden.items())
        parts.append(Text(f"  and {more}", style="dim", no_wrap=True, overflow="ellipsis"))
    foot = _foot(snapshot, gates, width)
    parts.extend(foot)
    if snapshot.samples is not None:
        parts.extend(_samples(snapshot.samples, width, height - 2 - len(places) - len(foot) - bool(hidden)))
    return Group(*parts)


def _samples(samples: Sequence[SampleSnapshot], width: int, room: int) -> list[RenderableType]:
    """The samples that wait the longest in ``room`` lines, with a line of its own for each thing that one does."""
    lines = [Text(f"{plural(len(samples), 'unfinished sample')}, the longest wait first (Ctrl-\\ hides them)")]
    names = max((len(_sample_name(sample)) for sample in samples), default=0)
    names = min(names, width // 2)
    for sample in samples:
        for place, (seconds, what) in enumerate(sample.doing):
            name = "" if place else shorten(_sample_name(sample), names)
            lines.append(Text(f"  {name:<{names}}  {duration(seconds):>5}  {what}"))
    shown: list[RenderableType] = []
    for line in lines[: max(1, room)]:
        line.no_wrap, line.overflow = True, "ellipsis"
        shown.append(line)
    return shown


def _sample_name(sample: SampleSnapshot) -> str:
    return sample.name if sample.epoch == 1 else f"{sample.name} (epoch {sample.epoch})"


def _visible(units: Sequence[UnitSnapshot], room: int) -> list[int]:
    if len(units) <= room:
        return list(range(len(units)))
    ranked = sorted(range(len(units)), key=lambda place: (_ORDER.index(units[place].status), place))
    return sorted(ranked[: max(1, room - 1)])


def _unit_table(snapshot: RunSnapshot, places: Sequence[int], paces: Mapping[int, Pace], width: int) -> RenderableType:
    """A row for each unit; columns appear by importance as the width allows."""
    rows = [(snapshot.units[place], paces.get(place)) for place in places]
    telling = _telling(snapshot.units)
    widths = _widths([unit for unit, _ in rows], width)
    table = Table.grid(padding=(0, _GAP, 0, 0))
    for name, columns in widths.items():
        justify: Literal["left", "right"] = "right" if name in ("count", "left") else "left"
        table.add_column(no_wrap=True, overflow="ellipsis", justify=justify, width=columns)
    for unit, pace in rows:
        cells = _cells(unit, pace, telling, widths)
        table.add_row(*(cells[name] for name in widths), style=_STYLE[unit.status])
    return table


def _widths(units: Sequence[UnitSnapshot], width: int) -> dict[str, int]:
    """The columns' widths: the name and the scores share what the others leave, and neither takes all of it."""
    fixed = {"count": max((len(_count(unit)) for unit in units), default=1)}
    errors = 10 if any(unit.errors for unit in units) else 0
    wanted = (("left", 12, 54), ("bar", 12 if width < 140 else 24, 70), ("errors", errors, 100))
    fixed |= {name: columns for name, columns, least in wanted if columns and width >= least}
    # One gap more than there are: older versions of rich pad the last column too.
    rest = max(1, width - _GAP - sum(columns + _GAP for columns in fixed.values()))
    names = max((len(_GAP_TEXT.join(filter(None, _parts(unit)))) for unit in units), default=1)
    scores = max((len(_score(unit)) for unit in units), default=0)
    own = min(names, max(rest - scores - _GAP, rest // 2)) if width >= 44 else min(names, rest)
    score = min(scores, rest - own - _GAP)
    widths = {"name": max(1, own), "count": fixed.pop("count")}
    if score >= 8 and width >= 44:
        widths["score"] = score
    return {**widths, **fixed}


def _parts(unit: UnitSnapshot) -> tuple[str, str, str]:
    return unit.name, unit.label, unit.model


def _telling(units: Sequence[UnitSnapshot]) -> tuple[bool, ...]:
    """Which of name, label and model tell one unit from another; of a single one its name."""
    differ = tuple(len(set(column)) > 1 for column in zip(*map(_parts, units), strict=True))
    return differ if any(differ) else (True, False, False)


def _name(unit: UnitSnapshot, telling: Sequence[bool], room: int) -> Text:
    """Name, label and model in ``room`` columns: where they don't fit, what all units share goes first."""
    parts = [(place, text) for place, text in enumerate(_parts(unit)) if text]
    for place in (2, 1, 0):  # the model goes before the name
        if _length(parts) > room and not telling[place]:
            parts = [part for part in parts if part[0] != place]
    while _length(parts) > room and len(parts) > 1 and room // len(parts) < _LEAST:
        parts.pop(0)
    shown = Text(no_wrap=True)
    for number_of, (place, text) in enumerate(parts):
        # What is short leaves its share to those after it.
        share = (room - len(shown.plain) - _GAP * bool(shown)) // (len(parts) - number_of)
        later = sum(len(each) + _GAP for _, each in parts[number_of + 1 :])
        free = room - len(shown.plain) - _GAP * bool(shown) - later
        shown.append(_GAP_TEXT if shown else "")
        shown.append(shorten(text, max(share, free)), style="bold" if place == 0 else "not bold dim" if place else "")
    return shown


def _length(parts: Sequence[tuple[int, str]]) -> int:
    return sum(len(text) + _GAP for _, text in parts) - _GAP


def _score(unit: UnitSnapshot) -> str:
    return "  ".join(f"{label} {number(value)}" for label, value in headline(unit.metrics))


def _cells(
    unit: UnitSnapshot, pace: Pace | None, telling: Sequence[bool], widths: Mapping[str, int]
) -> dict[str, RenderableType]:
    failed = sum(unit.errors.values())
    bar = ProgressBar(total=unit.total, completed=unit.done, width=widths.get("bar"), pulse=False)
    return {
        "name": _name(unit, telling, widths["name"]),
        "count": Text(_count(unit)),
        "score": Text(_score(unit)),
        "left": Text(_left(unit, pace)),
        "errors": Text(plural(failed, "error") if failed else "", style="red"),
        "bar": bar if unit.total else Text(),
    }


def _count(unit: UnitSnapshot) -> str:
    if unit.total is None:
        return f"{unit.done:,}"
    return f"{unit.done:,}/{unit.total:,}"


def _left(unit: UnitSnapshot, pace: Pace | None) -> str:
    if unit.status == "running":
        left = pace.left(unit.done, unit.total) if pace else None
        return "" if left is None else f"{duration(left)} left"
    return {"error": "failed"}.get(unit.status, unit.status)


def _foot(snapshot: RunSnapshot, gates: GateTrends, width: int) -> list[RenderableType]:
    """One line of the whole, and one each for a full disk, repeated requests, errors and the commonest of these.

    The place of an error and the reason of a retry are what a person needs when nothing moves.
    """
    errors: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for unit in snapshot.units:
        errors.update(unit.errors)
        examples = {**unit.error_examples, **examples}
    used = (
        f"tokens {tokens(sum(unit.input_tokens for unit in snapshot.units))} in, "
        f"{tokens(sum(unit.output_tokens for unit in snapshot.units))} out"
    )
    parts = [duration(snapshot.elapsed), *(gates.text(gate) for gate in snapshot.gates), used]
    repeated = retry_parts(snapshot.units)
    explained = any(unit.retry_cause for unit in snapshot.units)
    if not explained:
        parts += repeated
    lines = [(" · ".join(parts), "dim")]
    # Units of a run write to one folder: if one waits for space, all soon do.
    if stalled := next((unit.stalled for unit in snapshot.units if unit.stalled), ""):
        lines.append((shorten(f"waits: {stalled}", width), "bold yellow"))
    if explained:
        lines.append((shorten(" · ".join(repeated), width), "yellow"))  # the end of a reason says most
    again = sum(unit.retried for unit in snapshot.units)
    said = [f"{plural(again, 'sample')} run again"] if again else []
    if errors:
        lines.append((" · ".join([f"errors: {counts(errors)}", *said]), "red"))
    elif said:
        lines.append((said[0], "yellow"))
    if shown := next((examples[kind] for kind, _ in errors.most_common() if kind in examples), ""):
        lines.append((f"  {shown}", "red"))
    return [Text(line, style=style, no_wrap=True, overflow="ellipsis") for line, style in lines]
