"""Sums that lose nothing, and variances that stay exact enough for any data."""

from __future__ import annotations

import math
from array import array


class ExactSum:
    """A sum of floats that is rounded once, at the end, whatever the order (Shewchuk 1997, as ``math.fsum``).

    Infinities and NaN give what IEEE addition would give.
    """

    __slots__ = ("_partials", "_special")

    def __init__(self) -> None:
        self._partials: list[float] = []
        self._special = 0.0

    def add(self, x: float) -> None:
        """Add one number."""
        partials = self._partials
        if x - x != 0.0:
            self._special += x
            return
        kept = 0
        for y in partials:
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low:
                partials[kept] = low
                kept += 1
            x = high
        partials[kept:] = [x]

    def merge(self, other: ExactSum) -> None:
        """Add all that ``other`` has added."""
        for x in list(other._partials):
            self.add(x)
        self._special += other._special

    def value(self) -> float:
        """The sum."""
        if self._special:  # NaN is truthy too
            return self._special
        return math.fsum(self._partials)


class Moments:
    """Number, mean and variance of numbers seen one by one (Welford 1962), and of two such sets (Chan et al. 1979)."""

    __slots__ = ("_m2", "_mean", "count")

    def __init__(self) -> None:
        self.count = 0
        self._mean = 0.0
        self._m2 = 0.0

    def add(self, x: float) -> None:
        """Add one number."""
        self.count += 1
        delta = x - self._mean
        self._mean += delta / self.count
        self._m2 += delta * (x - self._mean)

    def merge(self, other: Moments) -> None:
        """Add all that ``other`` has added."""
        if other.count == 0:
            return
        total = self.count + other.count
        delta = other._mean - self._mean
        self._m2 += other._m2 + delta * delta * self.count * other.count / total
        self._mean += delta * other.count / total
        self.count = total

    def variance(self) -> float:
        """The sample variance (divided by n - 1); 0 for fewer than two numbers, NaN with an infinity among them."""
        if self.count < 2:
            return 0.0
        return self._m2 / (self.count - 1)


def floats(values: array[float]) -> tuple[float, float]:
    """The mean and the population variance of at least one number, in two passes."""
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((x - mean) ** 2 for x in values) / len(values)
