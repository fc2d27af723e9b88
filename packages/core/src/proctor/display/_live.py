"""What the rich screen shows while a run is on: a line for each unit and a foot for the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from proctor.contracts import GateSnapshot, RunSnapshot, UnitSnapshot
from proctor.display._pace import Pace
from proctor.display._text import counts, duration, number, plural, shorten, tokens

__all__ = ["live_view"]

_STYLE: Mapping[str, str] = {
    "waiting": "dim",
    "running": "",
    "scoring": "",
    "done": "green",
    "error": "red",
    "cancelled": "yellow",
}
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
    """Columns by importance: count, name, then score, bar, errors, time left and model as the width allows."""
    several_models = len({unit.model for unit in snapshot.units}) > 1 or width >= 100
    columns = [("name", 0), ("count", 0), ("score", 44), ("left", 54), ("bar", 70), ("errors", 100)]
    wanted = [name for name, least in columns if width >= least]
    table = Table.grid(padding=(0, 2, 0, 0))
    for name in wanted:
        table.add_column(
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if name in ("count", "left") else "left",
            ratio=1 if name == "name" else None,
        )
    table.expand = True
    for place in places:
        unit = snapshot.units[place]
        cells = _cells(unit, paces.get(place), several_models, width)
        table.add_row(*(cells[name] for name in wanted), style=_STYLE[unit.status])
    return table


def _cells(unit: UnitSnapshot, pace: Pace | None, with_model: bool, width: int) -> dict[str, RenderableType]:
    name = Text(unit.name, style="bold")
    if with_model and width >= 64:
        name.append(f"  {shorten(unit.model, max(12, width // 4))}", style="not bold dim")
    score = "  ".join(f"{label} {number(value)}" for label, value in unit.metrics[: 1 if width < 90 else 3])
    failed = sum(unit.errors.values())
    return {
        "name": name,
        "count": Text(_count(unit)),
        "score": Text(score),
        "left": Text(_left(unit, pace)),
        "errors": Text(plural(failed, "error"), style="red") if failed else "",
        "bar": ProgressBar(total=unit.total or None, completed=unit.done, width=12 if width < 110 else 24, pulse=False)
        if unit.total
        else "",
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
