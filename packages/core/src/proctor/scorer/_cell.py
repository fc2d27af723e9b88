"""The metrics of one stream of scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.contracts import UsageError
from proctor.registry import is_registered, registry_info
from proctor.schema import EvalMetric, Value, redact_text
from proctor.scorer._counting import CountingAccumulator
from proctor.scorer._decorators import logged_params, short_name
from proctor.scorer._spool import accumulator_of
from proctor.scorer._types import Accumulator, Metric, SampleScore
from proctor.scorer._value import number_of


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

    def values(self, scored: int, keyed: bool) -> list[tuple[str, EvalMetric]]:
        """The metric's values with their keys; NaN when nothing was scored (several named values stay named).

        Raises:
            Exception: whatever went wrong in the metric, at any time.
        """
        if self.error is not None:
            raise self.error
        try:
            result = self.accumulator.result()
        except Exception:
            if scored:
                raise
            result = math.nan
        if not scored and not isinstance(result, dict):
            result = math.nan
        return list(_named(self.name, result, keyed))


@dataclass(frozen=True, slots=True)
class MetricFailure:
    """A metric that could not be computed.

    Attributes:
        scorer: whose scores it was to sum up.
        score: the row of the results that lacks it: the scorer, or a key of its dicts.
        metric: the metric's name.
        reducer: what made one score of a sample's epochs.
        error: what it raised.
    """

    scorer: str
    score: str
    metric: str
    reducer: str | None
    error: Exception

    @property
    def reason(self) -> str:
        """What went wrong, in words."""
        notes = "".join(f" ({note})" for note in getattr(self.error, "__notes__", ()))
        text = redact_text(f"{self.error}{notes}")
        return text if isinstance(self.error, UsageError) else f"{type(self.error).__name__}: {text}".rstrip(": ")

    def facts(self) -> dict[str, str | None]:
        """For the log."""
        return {
            "scorer": self.scorer,
            "score": self.score,
            "metric": self.metric,
            "reducer": self.reducer,
            "reason": self.reason,
        }


class Cell:
    """Metrics over the scores of a scorer, or over those of one key of its dicts.

    Args:
        metrics: the metrics.
        keyed: whether the scores are those of one key, where metrics with several values are named differently.

    ``missing`` counts scores of which there is nothing to add, ``nan`` those of them for which nothing else gives a
    reason, and ``texts`` the epochs that gave text which is no number.
    """

    __slots__ = ("_counting", "_keyed", "_slots", "_unreduced", "add", "missing", "nan", "scored", "texts")

    def __init__(self, metrics: Sequence[Metric], keyed: bool = False) -> None:
        slots = [_Slot(metric) for metric in metrics]
        self._slots = slots
        self._keyed = keyed
        self._unreduced = [slot for slot in slots if slot.unreduced]
        self.scored = self.missing = self.nan = self.texts = 0
        reduced = [slot for slot in slots if not slot.unreduced]

        self._counting = [each for slot in reduced if isinstance(each := slot.accumulator, CountingAccumulator)]

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
    def wants_reduced(self) -> bool:
        """Whether a metric wants the scores reduced over epochs."""
        return any(not slot.unreduced for slot in self._slots)

    @property
    def names(self) -> list[str]:
        """The metrics' names."""
        return [slot.name for slot in self._slots]

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

    def missed(self, metadata: Mapping[str, Any], position: float, epochs: int | None) -> None:
        """Note a sample without a score (see ``CountingAccumulator.missed``)."""
        for counting in self._counting:
            counting.missed(metadata, position, epochs)

    def metrics(self, complete: bool) -> tuple[dict[str, EvalMetric], list[tuple[str, Exception]]]:
        """The results by key, in the order of the metrics, and the names of metrics that failed, with their errors.

        Args:
            complete: every sample that was planned was added, or noted as missing.
        """
        found: dict[str, EvalMetric] = {}
        failed: list[tuple[str, Exception]] = []
        for slot in self._slots:
            try:
                values = slot.values(self.scored, self._keyed)
                counts = slot.accumulator.counts() if isinstance(slot.accumulator, CountingAccumulator) else {}
            except Exception as error:
                failed.append((slot.name, error))
                continue
            params = logged_params(slot.metric)
            for key, metric in values:
                metric.params = params
                if (count := counts.get(metric.name)) is not None:
                    metric.metadata = {"proctor": count.facts(complete and not slot.unreduced)}
                found[_unique(key, found)] = metric
        return found, failed

    def running(self) -> Iterator[tuple[str, float]]:
        """The metrics that can be told at any time without effort."""
        if not self.scored:
            return
        for slot in self._slots:
            if slot.accumulator.live and slot.error is None and not slot.unreduced:
                try:
                    value = slot.accumulator.result()
                except Exception:  # it is told of at the end: with more scores it may do
                    continue
                if isinstance(value, (int, float)):
                    yield slot.name, float(value)


def _fail(slot: _Slot, error: Exception) -> None:
    slot.error = slot.error or error
    slot.add = _ignore


def _ignore(score: SampleScore) -> None:
    """In place of a failed metric's ``add``."""


def _named(name: str, value: Value, keyed: bool) -> Iterator[tuple[str, EvalMetric]]:
    if isinstance(value, dict):
        for label, part in value.items():
            key = f"{name}_{label}" if keyed else str(label)
            yield key, EvalMetric(name=str(label), value=_number(part), group=name)
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            label = str(index if keyed else index + 1)
            yield f"{name}{'_' if keyed else '-'}{label}", EvalMetric(name=label, value=_number(part), group=name)
    else:
        yield name, EvalMetric(name=name, value=_number(value))


def _number(value: Any) -> float:
    number = math.nan if value is None else number_of(value)
    if number is None:
        raise UsageError(f"it gave {repr(value)[:80]}, which is no number")
    return number


def _unique(key: str, taken: dict[str, EvalMetric]) -> str:
    number = 1
    name = key
    while name in taken:
        number += 1
        name = f"{key}{number}"
    return name
