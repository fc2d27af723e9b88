"""The metadata fields that metrics need in every sample."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.contracts import UsageError
from proctor.registry import is_factory
from proctor.schema import Sample
from proctor.scorer._decorators import scorer_metrics
from proctor.scorer._types import AccumulatorMetric, Metric, MetricsSpec, SampleScore, Scorer

_NEEDS = "__proctor_needs_fields__"


def needs_field(metric: AccumulatorMetric, *fields: tuple[str, str]) -> AccumulatorMetric:
    """Note that ``metric`` needs metadata fields, for ``check_fields``; each with the metric that wants it."""
    setattr(metric, _NEEDS, fields)
    return metric


def needed_fields(metric: object) -> tuple[tuple[str, str], ...]:
    """The metadata fields that ``metric`` needs, each with the metric that wants it."""
    found: tuple[tuple[str, str], ...] = getattr(metric, _NEEDS, ())
    return found


def metadata_field(score: SampleScore, field: str, wanted_by: str) -> Hashable:
    """The value of a metadata field of the score's sample.

    Raises:
        UsageError: if the sample has no such field.
    """
    metadata = score.sample_metadata or {}
    value = metadata.get(field)
    if value is None:
        raise UsageError(_lacks(field, wanted_by, score.sample_id, metadata))
    return value if isinstance(value, Hashable) else str(value)


def check_fields(scorers: Iterable[Scorer], metrics: MetricsSpec | None, samples: Iterable[Sample]) -> None:
    """Refuse metrics that need a metadata field which a sample has not: once all is paid for it is too late.

    Args:
        scorers: a task's scorers.
        metrics: the task's own metrics, if they take the place of those of the scorers.
        samples: its samples, which are read only if a metric needs a field.

    Raises:
        UsageError: if a sample lacks a field.
    """
    specs = [scorer_metrics(scorer) if metrics is None else metrics for scorer in scorers]
    needed = dict.fromkeys(need for spec in specs for metric in _each(spec) for need in needed_fields(metric))
    if not needed:
        return
    for sample in samples:
        metadata = sample.metadata or {}
        for field, wanted_by in needed:
            if metadata.get(field) is None:
                raise UsageError(
                    f"{_lacks(field, wanted_by, sample.id, metadata)}. Give it in Sample(metadata=...), have a "
                    f"solver set it, or leave the metric out."
                )


def _each(spec: MetricsSpec) -> Iterator[Metric]:
    """The metrics of ``spec``, whatever lists and dicts they stand in."""
    some: Sequence[Any] = [spec] if isinstance(spec, Mapping) else spec
    for one in some:
        if isinstance(one, Mapping):
            for metrics in one.values():
                yield from _each(metrics)
        elif not is_factory(one):
            yield one


def _lacks(field: str, wanted_by: str, sample: object, metadata: Mapping[str, Any]) -> str:
    known = ", ".join(map(repr, metadata)) or "none"
    return (
        f"{wanted_by} needs the metadata field {field!r} in every sample, but sample {sample!r} has none of that name "
        f"(its fields: {known})"
    )
