from __future__ import annotations

import math
from typing import Self

from proctor.scorer._decorators import metric
from proctor.scorer._sums import Moments
from proctor.scorer._types import Accumulator, AccumulatorMetric, Metric, SampleScore, ValueToFloat
from proctor.scorer._value import of_metric
from proctor.scorer._value import to_float as default_to_float


class Spread(Accumulator):
    """The variance of scores, as an accumulator; ``result`` is the sample variance."""

    __slots__ = ("_convert", "moments")

    values_only = True

    def __init__(self, convert: ValueToFloat) -> None:
        self._convert = convert
        self.moments = Moments()

    def add(self, score: SampleScore) -> None:
        self.moments.add(self._convert(score.score.value))

    def merge(self, other: Self) -> None:
        self.moments.merge(other.moments)

    def result(self) -> float:
        return self.moments.variance()


class _Deviation(Spread):
    __slots__ = ()

    def result(self) -> float:
        return math.sqrt(self.moments.variance())


@metric
def var(to_float: ValueToFloat = default_to_float) -> Metric:
    """The sample variance of the scores (divided by n - 1); 0 for fewer than two.

    Args:
        to_float: from a score's value to a number.
    """
    convert = of_metric(to_float)
    return AccumulatorMetric(lambda: Spread(convert))


@metric
def std(to_float: ValueToFloat = default_to_float) -> Metric:
    """The sample standard deviation of the scores (divided by n - 1); 0 for fewer than two.

    Args:
        to_float: from a score's value to a number.
    """
    convert = of_metric(to_float)
    return AccumulatorMetric(lambda: _Deviation(convert))
