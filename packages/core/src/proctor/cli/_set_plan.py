"""What a set has to do, as lines for a person and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from proctor.cli._output import unit_facts, unit_name
from proctor.display import plural

if TYPE_CHECKING:
    from proctor.sets import Alien, SetPlan, SetUnit

__all__ = ["plan_lines", "set_plan_facts"]

_MOST = 5  # files that are named


def plan_lines(plan: SetPlan) -> Iterator[str]:
    """A heading, a line a unit, and one on what is left alone."""
    counts = Counter(each.state for each in plan.units)
    said = ", ".join(f"{count} {state}" for state, count in counts.items())
    yield f"{plural(len(plan.units), 'unit')} (a task with a model): {said}"
    width = max((len(each.state) for each in plan.units), default=0)
    for each in plan.units:
        yield f"  {each.state:<{width}}  {_unit(each)}"
        for change in each.changes:
            yield f"  {'':<{width}}    {change}"
    if plan.others:
        yield f"left alone: {plural(len(plan.others), 'log')} of other tasks, models or configurations"
    if plan.aliens:
        yield f"left alone: {plural(len(plan.aliens), 'file')} ({_named(plan.aliens)})"


def _unit(each: SetUnit) -> str:
    parts = [unit_name(each.unit), _samples(each)]
    if each.logs:
        more = len(each.logs) - 1
        parts.append(each.logs[0].location + (f" and {plural(more, 'earlier log')}" if more else ""))
    return " · ".join(parts)


def _samples(each: SetUnit) -> str:
    total = each.unit.total
    if each.state in ("complete", "resumes"):
        why = ", ".join(f"{count:,} {reason}" for reason, count in each.why.items())
        return f"{each.done:,} / {'?' if total is None else f'{total:,}'} done" + (f" ({why})" if why else "")
    return "samples of unknown number" if total is None else plural(total, "sample")


def _named(aliens: tuple[Alien, ...]) -> str:
    named = [alien.name if alien.what == "not a log" else f"{alien.name}: {alien.what}" for alien in aliens[:_MOST]]
    more = len(aliens) - len(named)
    return "; ".join(named) + (f"; and {more:,} more" if more else "")


def set_plan_facts(plan: SetPlan) -> dict[str, Any]:
    """The same as JSON data."""
    return {
        "units": [
            {
                **unit_facts(each.unit),
                "state": each.state,
                "samples": each.unit.total,
                "done": each.done,
                "why": dict(each.why),
                "epochs": each.unit.epochs,
                "logs": [log.location for log in each.logs],
                "changes": list(each.changes),
            }
            for each in plan.units
        ],
        "other_logs": [log.location for log in plan.others],
        "aliens": [{"name": alien.name, "what": alien.what} for alien in plan.aliens],
    }
