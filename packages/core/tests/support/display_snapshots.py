"""Runs at some moment, for the tests of screens."""

from __future__ import annotations

from dataclasses import replace

from proctor.display import GateSnapshot, MetricSnapshot, RunSnapshot, UnitSnapshot

UNIT = UnitSnapshot(
    name="quiz",
    model="mock/model",
    status="running",
    total=50,
    done=10,
    running=4,
    errors={"TimeoutError": 2, "ValueError": 1},
    metrics=(("accuracy", 0.6),),
    input_tokens=12_345,
    output_tokens=678,
    retries=3,
)
GATES = (GateSnapshot("openai", 37, 40, 3), GateSnapshot("subprocesses", 2, 2))
MISSING = {"error:TimeoutError": 2, "error:ValueError": 1}


def at(elapsed: float, *units: UnitSnapshot) -> RunSnapshot:
    """The run after ``elapsed`` seconds."""
    return RunSnapshot(units=units or (UNIT,), gates=GATES, elapsed=elapsed)


def finished(unit: UnitSnapshot = UNIT) -> UnitSnapshot:
    """``unit`` at its end."""
    return replace(
        unit,
        status="done",
        done=50,
        running=0,
        seconds=62.4,
        location="logs/2026-11-29T11-27-19-00-00_quiz_8JwCx7XzYLyCEauVUHYrhy.eval",
        results=(
            MetricSnapshot("match", "accuracy", 0.617, stderr=0.0712, scored=47, total=50, missing=MISSING),
            MetricSnapshot("match", "f1[astronomy]", 0.5),
        ),
        outcomes={"total": 50, "completed": 47, "error:TimeoutError": 2, "error:ValueError": 1, "limit:token": 4},
    )
