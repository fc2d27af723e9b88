from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Self

from proctor.scorer._decorators import metric
from proctor.scorer._fields import metadata_field, needs_field
from proctor.scorer._sums import ExactSum
from proctor.scorer._types import Accumulator, AccumulatorMetric, Metric, SampleScore, ValueToFloat
from proctor.scorer._value import of_metric
from proctor.scorer._value import to_float as default_to_float
from proctor.scorer._variance import Spread

_ASKER = "stderr(cluster=...)"


class _StandardError(Spread):
    __slots__ = ()

    def result(self) -> float:
        count = self.moments.count
        return math.sqrt(self.moments.variance() / count) if count > 1 else 0.0


class _ClusteredError(Accumulator):
    """Number and sum of scores by cluster.

    With C clusters, n scores and their mean m, the square of the standard error is the sum over clusters of
    (sum of (score - m))^2, times C / (C - 1) / n^2: Cameron, Gelbach and Miller 2011; for evaluations, E. Miller 2024,
    "Adding Error Bars to Evals".
    """

    __slots__ = ("_clusters", "_convert", "_field")

    live = False

    def __init__(self, convert: ValueToFloat, field: str) -> None:
        self._convert = convert
        self._field = field
        self._clusters: dict[Hashable, tuple[list[int], ExactSum]] = {}

    def add(self, score: SampleScore) -> None:
        count, total = self._cluster(metadata_field(score, self._field, _ASKER))
        count[0] += 1
        total.add(self._convert(score.score.value))

    def _cluster(self, key: Hashable) -> tuple[list[int], ExactSum]:
        if key not in self._clusters:
            self._clusters[key] = ([0], ExactSum())
        return self._clusters[key]

    def merge(self, other: Self) -> None:
        for key, (count, total) in other._clusters.items():
            own_count, own_total = self._cluster(key)
            own_count[0] += count[0]
            own_total.merge(total)

    def result(self) -> float:
        clusters = len(self._clusters)
        if clusters < 2:
            return 0.0
        sums = [(count[0], total.value()) for count, total in self._clusters.values()]
        number = sum(count for count, _ in sums)
        mean = math.fsum(total for _, total in sums) / number
        squares = math.fsum((total - count * mean) ** 2 for count, total in sums)
        return math.sqrt(squares * clusters / (clusters - 1)) / number


@metric
def stderr(to_float: ValueToFloat = default_to_float, cluster: str | None = None) -> Metric:
    """The standard error of the mean score, by the central limit theorem; 0 for fewer than two scores.

    Args:
        to_float: from a score's value to a number.
        cluster: the metadata field that says which samples belong together (such as questions on one text), since
            their scores are not independent.
    """
    convert = of_metric(to_float)
    if cluster is None:
        return AccumulatorMetric(lambda: _StandardError(convert))
    return needs_field(AccumulatorMetric(lambda: _ClusteredError(convert, cluster)), (cluster, _ASKER))
