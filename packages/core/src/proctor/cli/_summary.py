"""The end of a run for machines, as JSON data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from proctor.cli._estimate import estimate_facts
from proctor.cli._output import unit_facts
from proctor.display import UnitSnapshot, failed_metrics, stale_metrics, unit_from_log

if TYPE_CHECKING:
    from proctor.engine import Unit, UnitEstimate
    from proctor.schema import EvalLog
    from proctor.sets import SetResult

__all__ = ["log_facts", "plan_facts", "set_facts", "summary_facts"]


def plan_facts(units: Sequence[Unit]) -> dict[str, Any]:
    """``{"units": [...]}``: what a dry run found."""
    return {"units": [{**unit_facts(unit), "samples": unit.total, "epochs": unit.epochs} for unit in units]}


def summary_facts(logs: Sequence[EvalLog], exit_code: int, estimates: Sequence[UnitEstimate] = ()) -> dict[str, Any]:
    """``{"exit_code": 0, "logs": [...]}``; with ``--estimate`` it has ``estimates``, too."""
    summary: dict[str, Any] = {"exit_code": exit_code, "logs": [log_facts(log) for log in logs]}
    if estimates:
        summary["estimates"] = estimate_facts(estimates)
    return summary


def set_facts(plan: Mapping[str, Any], result: SetResult | None) -> dict[str, Any]:
    """``{"exit_code": 0, "success": true, "eval_set_id": "...", "plan": {...}, "logs": [...]}``.

    Args:
        plan: as JSON data.
        result: ``None`` when the run was refused.
    """
    return {
        "exit_code": 2 if result is None else result.exit_code,
        "success": result is not None and result.success,
        "eval_set_id": None if result is None else result.eval_set_id,
        "plan": plan,
        "logs": [] if result is None else [log_facts(log) for log in result.logs],
        "deleted": [] if result is None else list(result.cleaned),
    }


def log_facts(log: EvalLog) -> dict[str, Any]:
    """What a summary says of one log; its header is enough."""
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
        "failed_metrics": failed_metrics(log),
        "stale_metrics": stale_metrics(log),
        "input_tokens": unit.input_tokens,
        "output_tokens": unit.output_tokens,
        "seconds": unit.seconds,
        "retried_samples": unit.retried,
        "error": unit.error or None,
        "error_place": unit.error_place or None,
    }
