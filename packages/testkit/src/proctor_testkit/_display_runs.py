"""What a run looks like to a screen, at its moments: for the checks of displays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proctor.contracts import GateSnapshot, MetricSnapshot, RunSnapshot, SampleSnapshot, UnitSnapshot

__all__ = ["ODD_TEXTS", "UNITS", "at", "ended", "moments"]

ODD_TEXTS = (
    "[bold]markup[/bold] [/] [link",
    "ünïcode 語語語 😀",
    "tabs\tand\nlines\r\n",
    "\x1b[31mred\x1b[0m \x07 \x00",
    "%s {0} {} \\ \" '",
    "long" * 500,
    "half a pair \ud83d",
)

UNIT = UnitSnapshot(
    name="quiz", model="mock/model", status="running", total=50, running=4, metrics=(("accuracy", 0.6),), retries=3
)
UNITS = (UNIT, replace(UNIT, name="essay", model="mock/other", label="temperature=0.2", status="waiting", running=0))
GATES = (GateSnapshot("mock", 37, 40, 3), GateSnapshot("subprocesses", 2, None))


def at(elapsed: float, *units: UnitSnapshot, samples: tuple[SampleSnapshot, ...] | None = None) -> RunSnapshot:
    """The run after ``elapsed`` seconds."""
    return RunSnapshot(units=units, gates=GATES if units else (), elapsed=elapsed, samples=samples)


def ended(unit: UnitSnapshot) -> UnitSnapshot:
    """``unit`` at its end, with a result of each kind."""
    return replace(
        unit,
        status="done",
        done=unit.total or 0,
        running=0,
        seconds=62.4,
        input_tokens=12_345,
        output_tokens=678,
        location="logs/2026-01-01T00-00-00-00-00_quiz_0000.eval",
        errors={"TimeoutError": 2, "ValueError": 1},
        error_examples={"TimeoutError": "quiz.py:12: too late"},
        results=(
            MetricSnapshot("match", "accuracy", 0.617, 0.0712, 47, 50, missing={"error:TimeoutError": 3}),
            MetricSnapshot("match", "f1", float("nan")),
        ),
        outcomes={"total": 50, "completed": 47, "error:TimeoutError": 3, "limit:token": 4},
    )


def moments(units: Sequence[UnitSnapshot]) -> list[RunSnapshot]:
    """A run of ``units``: the plan, each at work in several steps, and all at their ends."""
    first = [replace(unit, status="waiting", done=0, running=0) for unit in units]
    told = [at(0.0, *first)]
    for step in range(1, 11):
        now = [replace(unit, status="running", done=(unit.total or 50) * step // 10) for unit in units]
        told.append(at(step * 7.0, *now))
    return [*told, at(77.0, *map(ended, units))]
