from __future__ import annotations

import math
from typing import Literal, Self

from proctor.schema import Value
from proctor.scorer._decorators import metric
from proctor.scorer._spool import accumulator_of
from proctor.scorer._stderr import metadata_field
from proctor.scorer._types import Accumulator, AccumulatorMetric, Metric, SampleScore, ValueToFloat
from proctor.scorer._value import to_float as default_to_float


class _Grouped(Accumulator):
    live = False

    def __init__(
        self, metric: Metric, field: str, overall: Literal["samples", "groups", False], label: str, template: str
    ) -> None:
        self._metric = metric
        self._field = field
        self._overall = overall
        self._label = label
        self._template = template
        self._groups: dict[str, Accumulator] = {}
        self._first: dict[str, float] = {}
        self._all = accumulator_of(metric) if overall == "samples" else None
        self._count = 0

    def add(self, score: SampleScore) -> None:
        name = str(metadata_field(score, self._field, "grouped(...)"))
        self._group(name).add(score)
        self._seen(name, math.inf if score.position is None else score.position)
        self._count += 1
        if self._all is not None:
            self._all.add(score)

    def _group(self, name: str) -> Accumulator:
        if name not in self._groups:
            self._groups[name] = accumulator_of(self._metric)
        return self._groups[name]

    def _seen(self, name: str, position: float) -> None:
        self._first[name] = min(self._first.get(name, math.inf), position)

    def merge(self, other: Self) -> None:
        for name, group in other._groups.items():
            self._group(name).merge(group)
            self._seen(name, other._first[name])
        self._count += other._count
        if self._all is not None and other._all is not None:
            self._all.merge(other._all)

    def result(self) -> Value:
        # In the order of the samples, not of their ends: the first one is what a headline shows.
        names = sorted(self._groups, key=self._first.__getitem__)
        groups = {name: self._groups[name].result() for name in names}
        named: dict[str, str | int | float | bool | None] = {}
        for name, value in groups.items():
            named[self._template.format(group_name=name)] = _one_number(value)
        if self._overall == "groups":
            numbers = [default_to_float(value) for value in groups.values()]
            named[self._label] = math.fsum(numbers) / len(numbers) if numbers else math.nan
        elif self._all is not None:
            named[self._label] = _one_number(self._all.result()) if self._count else math.nan
        return named


def _one_number(value: Value) -> str | int | float | bool:
    if isinstance(value, (list, dict)):
        raise ValueError("grouped(...) takes a metric that gives one number, not several")
    return value


@metric
def grouped(
    metric: Metric,
    group_key: str,
    *,
    all: Literal["samples", "groups", False] = "samples",
    all_label: str = "all",
    value_to_float: ValueToFloat = default_to_float,
    name_template: str = "{group_name}",
) -> Metric:
    """A metric for each group of samples, and one for all of them.

    Args:
        metric: what is computed for each group.
        group_key: the metadata field that names a sample's group.
        all: how the value for all comes about: ``metric`` over all samples, or the mean of the groups' values; or none.
        all_label: the name of that value.
        value_to_float: unused; taken so that task files that give it keep working.
        name_template: how a group's value is named; ``{group_name}`` is the group.
    """
    return AccumulatorMetric(lambda: _Grouped(metric, group_key, all, all_label, name_template))
