from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

from proctor.schema import Value
from proctor.scorer._counting import Count, CountingAccumulator
from proctor.scorer._decorators import metric
from proctor.scorer._fields import metadata_field, needed_fields, needs_field
from proctor.scorer._spool import accumulator_of
from proctor.scorer._types import Accumulator, AccumulatorMetric, Metric, SampleScore, ValueToFloat
from proctor.scorer._value import to_float as default_to_float

_ASKER = "grouped(...)"


class _Grouped(CountingAccumulator):
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
        self._counts: dict[str, Count] = {}
        self._first: dict[str, float] = {}
        self._all = accumulator_of(metric) if overall == "samples" else None
        self._count = 0

    def add(self, score: SampleScore) -> None:
        name = str(metadata_field(score, self._field, _ASKER))
        self._group(name).add(score)
        self._seen(name, math.inf if score.position is None else score.position).scored += 1
        self._count += 1
        if self._all is not None:
            self._all.add(score)

    def _group(self, name: str) -> Accumulator:
        if name not in self._groups:
            self._groups[name] = accumulator_of(self._metric)
        return self._groups[name]

    def missed(self, metadata: Mapping[str, Any], position: float, epochs: int | None) -> None:
        if (found := metadata.get(self._field)) is None:
            return  # a sample that no group has lost
        count = self._seen(str(found), position)
        if epochs is None:
            count.missed += 1
        else:
            count.missed_epochs += epochs

    def counts(self) -> dict[str, Count]:
        counts = {self._template.format(group_name=name): count for name, count in self._counts.items()}
        if self._overall:
            counts[self._label] = total = Count()
            for count in self._counts.values():
                total.merge(count)
        return counts

    def _seen(self, name: str, position: float) -> Count:
        self._first[name] = min(self._first.get(name, math.inf), position)
        return self._counts.setdefault(name, Count())

    def merge(self, other: Self) -> None:
        for name, group in other._groups.items():
            self._group(name).merge(group)
        for name, count in other._counts.items():
            self._seen(name, other._first[name]).merge(count)
        self._count += other._count
        if self._all is not None and other._all is not None:
            self._all.merge(other._all)

    def result(self) -> Value:
        # In the order of the samples, not of their ends: the first one is what a headline shows.
        names = sorted(self._first, key=self._first.__getitem__)
        groups = {name: self._groups[name].result() for name in names if name in self._groups}
        named: dict[str, str | int | float | bool | None] = {}
        for name, value in groups.items():
            named[self._template.format(group_name=name)] = _one_number(value)
        if self._overall == "groups":
            numbers = [default_to_float(value) for value in groups.values()]
            named[self._label] = math.fsum(numbers) / len(numbers) if numbers else math.nan
        elif self._all is not None:
            named[self._label] = _one_number(self._all.result()) if self._count else math.nan
        # A group that lost all its samples stands last: a headline must not be of what has no figure.
        for name in names:
            if name not in groups:
                named.setdefault(self._template.format(group_name=name), math.nan)
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

    A group none of whose samples has a score has no value (NaN), and counts in no mean of groups.
    """
    made = AccumulatorMetric(lambda: _Grouped(metric, group_key, all, all_label, name_template))
    return needs_field(made, (group_key, _ASKER), *needed_fields(metric))
