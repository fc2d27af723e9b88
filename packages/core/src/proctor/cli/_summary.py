"""The end of a run for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from proctor.cli._estimate import estimate_json
from proctor.display import UnitSnapshot, stale_metrics, unit_from_log

if TYPE_CHECKING:
    from proctor.engine import Unit, UnitEstimate
    from proctor.schema import EvalLog
    from proctor.sets import SetResult

__all__ = ["log_summary", "plan_json", "set_json", "summary_json"]


def plan_json(units: Sequence[Unit]) -> str:
    """``{"units": [...]}``: what a dry run found."""
    plan = [
        {
            "unit": unit.id,
            "task": unit.name,
            "label": unit.label or None,
            "model": unit.model.name,
            "samples": unit.total,
            "epochs": unit.epochs,
        }
        for unit in units
    ]
    return json.dumps({"units": plan}, ensure_ascii=False, indent=2)


def summary_json(logs: Sequence[EvalLog], exit_code: int, estimates: Sequence[UnitEstimate] = ()) -> str:
    """``{"exit_code": 0, "logs": [...]}``; a metric that is not a number is ``null``, as JSON has no NaN.

    With ``--estimate`` it has ``estimates``, too.
    """
    summary: dict[str, Any] = {"exit_code": exit_code, "logs": [_unit(log) for log in logs]}
    if estimates:
        summary["estimates"] = estimate_json(estimates)
    return json.dumps(_finite(summary), ensure_ascii=False, indent=2)


def set_json(plan: Mapping[str, Any], result: SetResult | None) -> str:
    """``{"exit_code": 0, "success": true, "eval_set_id": "...", "plan": {...}, "logs": [...]}``.

    Args:
        plan: as JSON data.
        result: ``None`` when the run was refused.
    """
    end = {
        "exit_code": 2 if result is None else result.exit_code,
        "success": result is not None and result.success,
        "eval_set_id": None if result is None else result.eval_set_id,
        "plan": plan,
        "logs": [] if result is None else [_unit(log) for log in result.logs],
        "deleted": [] if result is None else list(result.cleaned),
    }
    return json.dumps(_finite(end), ensure_ascii=False, indent=2)


def log_summary(log: EvalLog) -> str:
    """The entry of one log in ``summary_json``."""
    return json.dumps(_finite(_unit(log)), ensure_ascii=False, indent=2)


def _unit(log: EvalLog) -> dict[str, Any]:
    unit: UnitSnapshot = unit_from_log(log)
    results = log.results
    return {
        "task": unit.name,
        "label": unit.label or None,
        "model": unit.model,
        "status": log.status,
        "location": unit.location,
        "run_id": log.eval.run_id,
        "eval_id": log.eval.eval_id,
        "total_samples": results.total_samples if results else None,
        "completed_samples": results.completed_samples if results else None,
        "metrics": [{**asdict(metric), "partial": metric.partial} for metric in unit.results],
        "partial": unit.partial,
        "outcomes": dict(unit.outcomes),
        "invalidated": log.invalidated,
        "stale_metrics": stale_metrics(log),
        "input_tokens": unit.input_tokens,
        "output_tokens": unit.output_tokens,
        "seconds": unit.seconds,
        "retried_samples": unit.retried,
        "error": unit.error or None,
        "error_place": unit.error_place or None,
    }


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
