"""The metrics of one stream of scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from proctor.contracts import UsageError
from proctor.registry import is_registered, registry_info
from proctor.schema import EvalMetric, Value
from proctor.scorer._decorators import logged_params, short_name
from proctor.scorer._spool import accumulator_of
from proctor.scorer._types import Accumulator, Metric, SampleScore
from proctor.scorer._value import to_float


class _Slot:
    """One metric, and what went wrong in it: an author's mistake must not end the sample that showed it."""

    __slots__ = ("accumulator", "add", "error", "metric", "name", "unreduced")

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.name = short_name(metric)
        info = registry_info(metric) if is_registered(metric, "metric") else None
        self.unreduced = info is not None and info.attribs.get("scores") == "unreduced"
        self.accumulator: Accumulator = accumulator_of(metric)
        self.add: Callable[[SampleScore], None] = self.accumulator.add
        self.error: Exception | None = None

    def value(self, scored: int, where: str) -> Value:
        """The metric; NaN when nothing was scored (several named values stay named)."""
        if self.error is None:
            try:
                result = self.accumulator.result()
                return result if scored or isinstance(result, dict) else math.nan
            except Exception as error:
                if not scored:
                    return math.nan
                self.error = error
        raise UsageError(f"the metric {self.name} of {where} failed: {self.error}") from self.error


class Cell:
    """Metrics over the scores of a scorer, or over those of one key of its dicts.

    Args:
        metrics: the metrics.
        keyed: whether the scores are those of one key, where metrics with several values are named differently.
    """

    __slots__ = ("_keyed", "_slots", "_unreduced", "add", "scored")

    def __init__(self, metrics: Sequence[Metric], keyed: bool = False) -> None:
        slots = [_Slot(metric) for metric in metrics]
        self._slots = slots
        self._keyed = keyed
        self._unreduced = [slot for slot in slots if slot.unreduced]
        self.scored = 0
        reduced = [slot for slot in slots if not slot.unreduced]

        def add(score: SampleScore) -> None:
            self.scored += 1
            for slot in reduced:
                try:
                    slot.add(score)
                except Exception as error:
                    _fail(slot, error)

        self.add = add

    @property
    def wants_unreduced(self) -> bool:
        """Whether a metric wants the scores of each epoch."""
        return bool(self._unreduced)

    @property
    def values_only(self) -> bool:
        """Whether no metric looks at anything but the values of scores."""
        return all(slot.accumulator.values_only for slot in self._slots)

    def add_unreduced(self, score: SampleScore) -> None:
        """Take the score of one epoch into account, in the metrics that want those."""
        for slot in self._unreduced:
            try:
                slot.add(score)
            except Exception as error:
                _fail(slot, error)

    def metrics(self, where: str) -> dict[str, EvalMetric]:
        """The results by key, in the order of the metrics.

        Raises:
            UsageError: if a metric failed; ``where`` says whose it is.
        """
        found: dict[str, EvalMetric] = {}
        for slot in self._slots:
            params = logged_params(slot.metric)
            for key, metric in self._named(slot, slot.value(self.scored, where)):
                metric.params = params
                found[_unique(key, found)] = metric
        return found

    def _named(self, slot: _Slot, value: Value) -> Iterator[tuple[str, EvalMetric]]:
        name = slot.name
        if isinstance(value, dict):
            for label, part in value.items():
                key = f"{name}_{label}" if self._keyed else str(label)
                yield key, EvalMetric(name=str(label), value=_number(part), group=name)
        elif isinstance(value, (list, tuple)):
            for index, part in enumerate(value):
                label = str(index if self._keyed else index + 1)
                yield (
                    f"{name}{'_' if self._keyed else '-'}{label}",
                    EvalMetric(name=label, value=_number(part), group=name),
                )
        else:
            yield name, EvalMetric(name=name, value=_number(value))

    def running(self) -> Iterator[tuple[str, float]]:
        """The metrics that can be told at any time without effort."""
        if self.scored:
            for slot in self._slots:
                if slot.accumulator.live and slot.error is None and not slot.unreduced:
                    value = slot.accumulator.result()
                    if isinstance(value, (int, float)):
                        yield slot.name, float(value)


def _fail(slot: _Slot, error: Exception) -> None:
    slot.error = slot.error or error
    slot.add = _ignore


def _ignore(score: SampleScore) -> None:
    """In place of a failed metric's ``add``."""


def _number(value: Any) -> float:
    return math.nan if value is None else to_float(value)


def _unique(key: str, taken: dict[str, EvalMetric]) -> str:
    number = 1
    name = key
    while name in taken:
        number += 1
        name = f"{key}{number}"
    return name
