"""Metrics that could not be computed: an evaluation ends in an error then, and the others stand."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from proctor.schema import EvalError, EvalLog, EvalResults, EvalStatus, own_metadata, redact_text
from proctor.scorer import MetricFailure

__all__ = ["Ending", "ending_without_metrics", "keep_status", "metrics_error", "settle_metrics"]

_FAILED, _OTHERWISE = "failed_metrics", "status_otherwise"
_MOST = 3  # are told of; all stand in the results


class Ending(NamedTuple):
    """How an evaluation ended but for its metrics."""

    status: EvalStatus
    error: EvalError | None
    failed: list[dict[str, Any]]
    """The metrics that could not be computed so far."""


def metrics_error(failures: Sequence[MetricFailure]) -> EvalError:
    """The error of an evaluation that lacks metrics: a sentence that says which, why, and what to do."""
    first = failures[0].error
    trace = redact_text("".join(traceback.format_exception(type(first), first, first.__traceback__)))
    return _error([failure.facts() for failure in failures], trace)


def _error(failed: Sequence[Mapping[str, Any]], trace: str = "") -> EvalError:
    told = list(dict.fromkeys(_told(one) for one in failed))
    more = [f"{len(told) - _MOST} more"] if len(told) > _MOST else []
    message = (
        f"not computed: {'; '.join([*told[:_MOST], *more])}. All other metrics stand. Mend it and run `proctor log "
        f"recompute LOG`, or do without: `proctor score LOG --action overwrite --metric NAME`."
    )
    return EvalError(message=message, traceback=trace or message, traceback_ansi=trace or message)


def _told(one: Mapping[str, Any]) -> str:
    where = one["scorer"] if one["score"] == one["scorer"] else f"{one['scorer']} (key {one['score']!r})"
    return f"the metric {one['metric']} of the scorer {where}: {one['reason']}"


def keep_status(results: EvalResults, status: EvalStatus) -> None:
    """Note in ``results`` how the evaluation would have ended with all its metrics."""
    own = {**own_metadata(results), _OTHERWISE: status}
    results.metadata = {**(results.metadata or {}), "proctor": own}


def ending_without_metrics(log: EvalLog) -> Ending:
    """How the evaluation of a finished log ended but for its metrics."""
    own = own_metadata(log.results) if log.results is not None else {}
    failed = own.get(_FAILED)
    if not isinstance(failed, list) or not failed:
        return Ending(log.status, log.error, [])
    return Ending("success" if own.get(_OTHERWISE) == "success" else "error", None, failed)


def settle_metrics(log: EvalLog, failures: Sequence[MetricFailure], before: Ending, *, kept: bool = False) -> None:
    """Give a log whose metrics were computed anew the status that it has with them.

    Args:
        log: which is changed.
        failures: the metrics that could not be computed.
        before: how it ended but for its metrics, asked before they were computed.
        kept: the metrics that it had stand beside the new ones.
    """
    assert log.results is not None
    own = {name: value for name, value in own_metadata(log.results).items() if name not in (_FAILED, _OTHERWISE)}
    failed = [*(before.failed if kept else ()), *(failure.facts() for failure in failures)]
    log.status, log.error = before.status, before.error
    if failed:
        own |= {_FAILED: failed, _OTHERWISE: before.status}
        log.status = "error"
        log.error = before.error or (_error(failed) if before.failed or not failures else metrics_error(failures))
    log.results.metadata = {**(log.results.metadata or {}), "proctor": own}
