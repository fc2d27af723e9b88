"""What commands print: JSON for machines, and the report of logs for a person."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from proctor.engine import Unit
    from proctor.schema import EvalLog

__all__ = ["json_option", "json_text", "print_json", "print_report", "unit_facts", "unit_name"]

_F = TypeVar("_F", bound=Callable[..., Any])


def json_option(help: str = "Print JSON.") -> Callable[[_F], _F]:
    """``--json``, which a command gets as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """``value`` as JSON that every parser reads: a number that JSON lacks (NaN, infinity) is ``null``."""
    text = json.dumps(_finite(value), indent=indent, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate becomes JSON's escape for it


def print_json(value: Any) -> None:
    """Print plain data; logs and their samples are printed as files hold them, by ``proctor.log.to_json``."""
    click.echo(json_text(value))


def print_report(logs: Sequence[EvalLog]) -> None:
    """Print what is left on a terminal when a run is over; headers are enough."""
    from proctor.display import report_text, unit_from_log

    for line in report_text([unit_from_log(log) for log in logs]):
        click.echo(line)


def unit_name(unit: Unit) -> str:
    """What a person knows a unit by: task, label, model."""
    return " · ".join(filter(None, (unit.name, unit.label, unit.model.name)))


def unit_facts(unit: Unit) -> dict[str, Any]:
    """What every plan says of a unit, as JSON data."""
    return {"unit": unit.id, "task": unit.name, "label": unit.label or None, "model": unit.model.name}


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
