"""What unfinished samples do and wait for, the longest wait first; asked for on another thread than the loop's."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from proctor.contracts import SampleSnapshot
from proctor.display import operation_text
from proctor.engine._progress import UnitProgress
from proctor.monitor import (
    Activity,
    Operation,
    awaiting_place,
    settled,
)
from proctor.schema import redact_text

__all__ = ["sample_snapshots", "unfinished_samples"]


def unfinished_samples(units: Sequence[UnitProgress]) -> list[dict[str, Any]]:
    """The samples that are under way, as JSON data."""
    samples = [_sample(unit, each) for unit in units for each in settled(unit.unfinished)]
    return sorted(samples, key=lambda sample: -sample["operations"][0]["seconds"])


def sample_snapshots(units: Sequence[UnitProgress]) -> tuple[SampleSnapshot, ...]:
    """The samples that are under way, for a screen."""
    several = len(units) > 1
    return tuple(
        SampleSnapshot(
            name=f"{sample['task']} {sample['id']}" if several else str(sample["id"]),
            epoch=sample["epoch"],
            doing=tuple((each["seconds"], operation_text(each)) for each in sample["operations"]),
        )
        for sample in unfinished_samples(units)
    )


def _sample(unit: UnitProgress, activity: Activity) -> dict[str, Any]:
    return {
        "task": unit.unit.name,
        "model": unit.unit.model.name,
        "id": activity.id,
        "epoch": activity.epoch,
        "attempt": activity.attempt,
        "seconds": round(time.monotonic() - activity.started, 1),
        "operations": [_operation(each) for each in activity.operations() or [_own_code(activity)]],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": operation.kind, "what": redact_text(operation.what[:200])}
    told["seconds"] = round(operation.seconds, 1)
    if operation.attempt:
        told["attempt"] = operation.attempt
    if operation.left is not None:
        told["left"] = round(operation.left, 1)
    if operation.error:
        told["error"] = operation.error
    return told


def _own_code(activity: Activity) -> Operation:
    """Nothing that the core does is under way: it is code of the task's own, since the latest event."""
    spans: list[str] = []
    events = activity.events
    for event in events[:]:
        if event.event == "span_begin":
            spans.append(event.name)
        elif event.event == "span_end" and spans:
            spans.pop()
    place = awaiting_place(activity.coroutine)
    seconds = time.monotonic() - activity.started
    if events and isinstance(stamp := events[-1].timestamp, str):
        seconds = min(seconds, max(0.0, time.time() - datetime.fromisoformat(stamp).timestamp()))
    what = " > ".join(spans) + (f" at {place}" if place else "")
    return Operation("code", what, seconds)
