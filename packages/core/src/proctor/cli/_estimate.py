"""What an evaluation would take, for a person and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from proctor.display import duration, plural, tokens

if TYPE_CHECKING:
    from proctor.engine import Amount, UnitEstimate

__all__ = ["estimate_facts", "estimate_text"]


def estimate_facts(estimates: Sequence[UnitEstimate]) -> list[dict[str, Any]]:
    """Each unit's estimate; amounts are ``{"value": ..., "low": ..., "high": ...}``, the 95 % interval."""
    return [asdict(each) for each in estimates]


def estimate_text(estimates: Sequence[UnitEstimate]) -> Iterator[str]:
    """Lines for a terminal."""
    for each in estimates:
        failed = f", {each.errors} failed" if each.errors else ""
        yield f"{' · '.join(filter(None, (each.task, each.label, each.model)))}: {plural(each.runs, 'run')}"
        yield f"  pilot   {plural(each.pilot, 'sample')}{failed} · {each.location}"
        yield f"  tokens  {_range(each.tokens, _tokens)}; in {_tokens(each.input_tokens.value)}, out " + _tokens(
            each.output_tokens.value
        )
        cost = "not known: give prices with --model-cost-config" if each.cost is None else _range(each.cost, _dollars)
        yield f"  cost    {cost}"
        yield f"  time    {_range(each.seconds, _time)} with {plural(each.at_once, 'sample')} at once"
    yield "95 % intervals of the total, by the spread of the pilot (Student's t). The pilot's logs are kept."


def _range(amount: Amount, show: Any) -> str:
    if amount.low == amount.high:
        return str(show(amount.value))
    return f"{show(amount.value)} ({show(amount.low)} to {show(amount.high)})"


def _tokens(count: float) -> str:
    return "any number" if count == float("inf") else tokens(round(count))


def _dollars(value: float) -> str:
    return "any amount" if value == float("inf") else f"${value:.2f}" if value >= 1 else f"${value:.2g}"


def _time(seconds: float) -> str:
    return "any time" if seconds == float("inf") else duration(seconds)
