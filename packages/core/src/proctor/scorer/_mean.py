from __future__ import annotations

from typing import Self

from proctor.scorer._decorators import metric
from proctor.scorer._sums import ExactSum
from proctor.scorer._types import Accumulator, AccumulatorMetric, Metric, SampleScore, ValueToFloat
from proctor.scorer._value import of_metric
from proctor.scorer._value import to_float as default_to_float


class _Mean(Accumulator):
    __slots__ = ("_convert", "_count", "_sum")

    values_only = True

    def __init__(self, convert: ValueToFloat) -> None:
        self._convert = convert
        self._count = 0
        self._sum = ExactSum()

    def add(self, score: SampleScore) -> None:
        self._count += 1
        self._sum.add(self._convert(score.score.value))

    def merge(self, other: Self) -> None:
        self._count += other._count
        self._sum.merge(other._sum)

    def result(self) -> float:
        return self._sum.value() / self._count if self._count else 0.0


@metric
def accuracy(to_float: ValueToFloat = default_to_float) -> Metric:
    """The share of correct answers, partly correct ones counted in part: the mean of the scores as numbers.

    Args:
        to_float: from a score's value to a number.
    """
    convert = of_metric(to_float)
    return AccumulatorMetric(lambda: _Mean(convert))


@metric
def mean() -> Metric:
    """The mean of the scores."""
    convert = of_metric(default_to_float)
    return AccumulatorMetric(lambda: _Mean(convert))
