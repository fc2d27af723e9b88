"""The end of a unit as a screen shows it, taken from the header of its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from proctor.contracts import MetricSnapshot, UnitSnapshot
from proctor.display._advice import next_command
from proctor.display._place import error_place
from proctor.display._shown_metric import shown_metrics
from proctor.schema import own_metadata

if TYPE_CHECKING:
    from proctor.contracts import UnitStatus
    from proctor.schema import EvalLog, EvalResults, EvalScore

__all__ = ["failed_metrics", "stale_metrics", "unit_from_log"]

_STATUS: Mapping[str, UnitStatus] = {"success": "done", "error": "error", "cancelled": "cancelled"}


def unit_from_log(log: EvalLog, *, retries: int = 0) -> UnitSnapshot:
    """The final snapshot of a unit from its log; the header is enough.

    Outcome counts (``limit:token``, ``error:OSError``, ...) come from ``results.metadata["proctor"]["outcomes"]``, or
    from ``eval.metadata`` when the unit was ended early and has no results; a log without them (another program's)
    shows the samples that did not complete as errors.
    """
    results = log.results
    usage = log.stats.model_usage.values()
    outcomes = _outcomes(log)
    retried = outcomes.pop("retried", 0)
    total = results.total_samples if results else outcomes.get("total")
    return UnitSnapshot(
        name=log.eval.task_display_name or log.eval.task,
        model=log.eval.model,
        status=_STATUS.get(log.status, "error"),
        total=total,
        done=(total or 0) - outcomes.get("not_run", 0),
        input_tokens=sum(used.all_input_tokens for used in usage),
        output_tokens=sum(used.output_tokens for used in usage),
        retries=retries,
        location=log.location,
        results=tuple(_metrics(log)),
        outcomes=outcomes,
        seconds=_seconds(log.stats.started_at, log.stats.completed_at),
        error=_error(log),
        error_place=error_place(log.error) if log.error else "",
        label=own_metadata(log.eval).get("label", ""),
        retried=retried,
        next=next_command(log, outcomes),
    )


def _error(log: EvalLog) -> str:
    if log.error is not None:
        return log.error.message
    stale = stale_metrics(log)
    return f"the scores are those of before the edit, since this is not at hand: {', '.join(stale)}" if stale else ""


def stale_metrics(log: EvalLog) -> list[str]:
    """Metrics that could not be computed anew after an edit, as their code was not at hand; all values are old then."""
    found = own_metadata(log.results).get("stale") if log.results is not None else None
    return [str(name) for name in found] if isinstance(found, list) else []


def failed_metrics(log: EvalLog) -> list[dict[str, Any]]:
    """Metrics that could not be computed: ``scorer``, ``score``, ``metric``, ``reducer`` and ``reason`` of each."""
    found = own_metadata(log.results).get("failed_metrics") if log.results is not None else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _metrics(log: EvalLog) -> Iterator[MetricSnapshot]:
    if log.results is None:
        return
    several = len({score.name for score in log.results.scores}) < len(log.results.scores)
    missing = own_metadata(log.results).get("partial")
    for score in log.results.scores:
        why = missing.get(score.scorer) if isinstance(missing, dict) else None
        yield from _score_metrics(score, _planned(log, log.results, score), _counts(why), several)


def _counts(found: Any) -> dict[str, int]:
    if not isinstance(found, dict):
        return {}
    return {str(kind): count for kind, count in found.items() if isinstance(count, int)}


def _planned(log: EvalLog, results: EvalResults, score: EvalScore) -> int:
    """What ``score`` could have counted: samples when their epochs were reduced to one score, else samples x epochs."""
    epochs = log.eval.config.epochs or 1
    once = results.total_samples // epochs
    if score.reducer:
        return once
    # The default reducer is not always named in a log; more scores than samples mean that nothing was reduced.
    reduced = (
        log.eval.config.epochs_reducer != [] and (score.scored_samples or 0) + (score.unscored_samples or 0) <= once
    )
    return once if reduced else results.total_samples


def _score_metrics(
    score: EvalScore, planned: int, missing: Mapping[str, int], show_reducer: bool
) -> Iterator[MetricSnapshot]:
    own = (score.metadata or {}).get("proctor")
    of_row = {**missing, **(_counts(own.get("missing")) if isinstance(own, dict) else {})}
    for shown, error in shown_metrics(score.metrics):
        counts = shown.counts
        scored = score.scored_samples if counts is None else counts.get("scored")
        known = scored is None or scored > 1  # one score tells nothing of its spread
        total = planned if counts is None else counts.get("planned")
        why = of_row if counts is None else {kind: counts[kind] for kind in ("missing_epochs",) if kind in counts}
        yield MetricSnapshot(
            scorer=score.name if score.name == score.scorer else f"{score.scorer}:{score.name}",
            name=shown.label,
            value=shown.metric.value,
            stderr=error.metric.value if error is not None and known else None,
            scored=scored,
            total=None if scored is None else total,
            reducer=score.reducer if show_reducer else None,
            missing={} if scored is None else why,
        )


def _outcomes(log: EvalLog) -> dict[str, int]:
    results = log.results
    found = _counts(own_metadata(results or log.eval).get("outcomes"))
    if found:
        return found
    if results is None:
        return {}
    missing = results.total_samples - results.completed_samples
    return {"error": missing} if missing > 0 else {}


def _seconds(start: str, end: str) -> float | None:
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):  # a run that never ended has no end
        return None
