from __future__ import annotations

import math
import random
from array import array
from typing import Self

from proctor.scorer._decorators import metric
from proctor.scorer._sums import floats
from proctor.scorer._types import Accumulator, AccumulatorMetric, Metric, SampleScore, ValueToFloat
from proctor.scorer._value import of_metric
from proctor.scorer._value import to_float as default_to_float

# Beyond this many scores, means of resamples are drawn from the normal distribution that they follow by the central
# limit theorem: the difference is far below the noise of `num_samples` draws, and resampling 100,000 takes minutes.
_EXACT_UP_TO = 2000


class _Bootstrap(Accumulator):
    live = False
    values_only = True

    __slots__ = ("_convert", "_draws", "_seed", "_values")

    def __init__(self, convert: ValueToFloat, draws: int, seed: int) -> None:
        self._convert = convert
        self._draws = draws
        self._seed = seed
        self._values: array[float] = array("d")

    def add(self, score: SampleScore) -> None:
        self._values.append(self._convert(score.score.value))

    def merge(self, other: Self) -> None:
        self._values.extend(other._values)

    def result(self) -> float:
        count = len(self._values)
        if count == 0:
            return 0.0
        if not all(map(math.isfinite, self._values)):
            return math.nan
        rand = random.Random(self._seed)
        # Sorted, so that the order in which samples happened to end does not show.
        values = array("d", sorted(self._values))
        if count <= _EXACT_UP_TO:
            means = array("d", (math.fsum(rand.choices(values, k=count)) / count for _ in range(self._draws)))
        else:
            centre, variance = floats(values)
            means = array("d", (rand.gauss(centre, math.sqrt(variance / count)) for _ in range(self._draws)))
        return math.sqrt(floats(means)[1])


@metric
def bootstrap_stderr(num_samples: int = 1000, to_float: ValueToFloat = default_to_float, seed: int = 0) -> Metric:
    """The standard error of the mean score, by resampling the scores with replacement.

    Args:
        num_samples: how many resamples.
        to_float: from a score's value to a number.
        seed: of the random numbers: the same scores give the same result.
    """
    convert = of_metric(to_float)
    return AccumulatorMetric(lambda: _Bootstrap(convert, num_samples, seed))
