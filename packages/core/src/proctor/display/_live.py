"""What the rich screen shows while a run is on: a line for each unit and a foot for the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from proctor.contracts import GateSnapshot, RunSnapshot, UnitSnapshot
from proctor.display._pace import Pace
from proctor.display._text import counts, duration, headline, number, plural, shorten, tokens

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
_ORDER = ("running", "scoring", "error", "waiting", "cancelled", "done")  # who stays when there is no room for all


def live_view(snapshot: RunSnapshot, paces: Mapping[int, Pace], width: int, height: int) -> RenderableType:
    """The frame for a terminal of ``width`` x ``height`` characters; what does not fit is left out and counted."""
    room = max(1, height - 5)
    places = _visible(snapshot.units, room)
    parts: list[RenderableType] = [_unit_table(snapshot, places, paces, width)]
    hidden = Counter(unit.status for place, unit in enumerate(snapshot.units) if place not in places)
    if hidden:
        more = ", ".join(f"{count} {status}" for status, count in hidden.items())
        parts.append(Text(f"  and {more}", style="dim", no_wrap=True, overflow="ellipsis"))
    parts.extend(_foot(snapshot, width))
    return Group(*parts)


def _visible(units: Sequence[UnitSnapshot], room: int) -> list[int]:
    if len(units) <= room:
        return list(range(len(units)))
    ranked = sorted(range(len(units)), key=lambda place: (_ORDER.index(units[place].status), place))
    return sorted(ranked[: max(1, room - 1)])


def _unit_table(snapshot: RunSnapshot, places: Sequence[int], paces: Mapping[int, Pace], width: int) -> RenderableType:
    """A row for each unit; columns appear by importance as the width allows."""
    with_model = width >= 100 or len({unit.model for unit in snapshot.units}) > 1
    rows = [(snapshot.units[place], paces.get(place)) for place in places]
    widths = _widths([unit for unit, _ in rows], width, with_model)
    table = Table.grid(padding=(0, _GAP, 0, 0))
    for name, columns in widths.items():
        justify: Literal["left", "right"] = "right" if name in ("count", "left") else "left"
        table.add_column(no_wrap=True, overflow="ellipsis", justify=justify, width=columns)
    for unit, pace in rows:
        cells = _cells(unit, pace, with_model, widths)
        table.add_row(*(cells[name] for name in widths), style=_STYLE[unit.status])
    return table


def _widths(units: Sequence[UnitSnapshot], width: int, with_model: bool) -> dict[str, int]:
    """The columns' widths: the name and the scores share what the others leave, and neither takes all of it."""
    fixed = {"count": max((len(_count(unit)) for unit in units), default=1)}
    errors = 10 if any(unit.errors for unit in units) else 0
    wanted = (("left", 12, 54), ("bar", 12 if width < 140 else 24, 70), ("errors", errors, 100))
    fixed |= {name: columns for name, columns, least in wanted if columns and width >= least}
    # One gap more than there are: older versions of rich pad the last column too.
    rest = max(1, width - _GAP - sum(columns + _GAP for columns in fixed.values()))
    names = max((len(_name(unit, with_model)) for unit in units), default=1)
    scores = max((len(_score(unit)) for unit in units), default=0)
    own = min(names, max(rest - scores - _GAP, rest // 2)) if width >= 44 else min(names, rest)
    score = min(scores, rest - own - _GAP)
    widths = {"name": max(1, own), "count": fixed.pop("count")}
    if score >= 8 and width >= 44:
        widths["score"] = score
    return {**widths, **fixed}


def _name(unit: UnitSnapshot, with_model: bool) -> str:
    return f"{unit.name}  {unit.model}" if with_model else unit.name


def _score(unit: UnitSnapshot) -> str:
    return "  ".join(f"{label} {number(value)}" for label, value in headline(unit.metrics))


def _cells(
    unit: UnitSnapshot, pace: Pace | None, with_model: bool, widths: Mapping[str, int]
) -> dict[str, RenderableType]:
    name = Text(unit.name, style="bold")
    room = widths["name"] - len(unit.name) - 2
    if with_model and room >= 8:
        name.append(f"  {shorten(unit.model, room)}", style="not bold dim")
    failed = sum(unit.errors.values())
    bar = ProgressBar(total=unit.total, completed=unit.done, width=widths.get("bar"), pulse=False)
    return {
        "name": name,
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


def _foot(snapshot: RunSnapshot, width: int) -> list[RenderableType]:
    errors: Counter[str] = Counter()
    for unit in snapshot.units:
        errors.update(unit.errors)
    used = (
        f"tokens {tokens(sum(unit.input_tokens for unit in snapshot.units))} in, "
        f"{tokens(sum(unit.output_tokens for unit in snapshot.units))} out"
    )
    parts = [duration(snapshot.elapsed), *(_gate(gate) for gate in snapshot.gates), used]
    if retries := sum(unit.retries for unit in snapshot.units):
        parts.append("1 retry" if retries == 1 else f"{retries:,} retries")
    foot: list[RenderableType] = [Text(" · ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")]
    if errors:
        foot.append(Text(f"errors: {counts(errors)}", style="red", no_wrap=True, overflow="ellipsis"))
    return foot


def _gate(gate: GateSnapshot) -> str:
    limit = "" if gate.limit is None else f"/{gate.limit}"
    return f"{gate.name} {gate.held}{limit}" + (f" (+{gate.waiting} waiting)" if gate.waiting else "")
