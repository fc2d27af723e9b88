"""The scores of one scorer under one reducer, on their way to metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from proctor.contracts import UsageError
from proctor.registry import is_factory
from proctor.schema import NOT_A_NUMBER, EvalScore
from proctor.scorer._cell import Cell, MetricFailure
from proctor.scorer._reducers import is_nan
from proctor.scorer._types import Metric, MetricsSpec, SampleScore

_WILD = frozenset("*?[")
_NO_TEXTS: Mapping[str, int] = {}


class MetricPlan:
    """Metrics as declared, taken apart: those of the whole score, and those of keys of dicts (by pattern, in order)."""

    __slots__ = ("keyed", "whole")

    def __init__(self, metrics: MetricsSpec, where: str) -> None:
        self.whole: list[Metric] | None = None
        self.keyed: list[tuple[str, list[Metric]]] = []
        if isinstance(metrics, Mapping):
            self._add_keyed(metrics, where)
            return
        whole: list[Metric] = []
        for metric in metrics:
            if isinstance(metric, Mapping):
                self._add_keyed(metric, where)
            else:
                whole.append(_checked(metric, where))
        # No metrics at all mean no results; but beside metrics of keys the whole has a row of its own.
        self.whole = whole if whole or self.keyed else None

    def _add_keyed(self, metrics: Mapping[str, Sequence[Metric]], where: str) -> None:
        for pattern, some in metrics.items():
            self.keyed.append((pattern, [_checked(metric, where) for metric in some]))

    def of_key(self, key: str) -> list[Metric]:
        """The metrics of one key: those of its own name first, then those of patterns."""
        exact = [metric for pattern, some in self.keyed if pattern == key for metric in some]
        return exact + [
            metric for pattern, some in self.keyed if pattern != key and fnmatchcase(key, pattern) for metric in some
        ]

    def key_order(self, keys: Sequence[str]) -> list[str]:
        """``keys`` in the order in which the patterns ask for them; with no scores, the patterns themselves.

        A key that was named, not meant by a pattern, stands among them even if no score has it.
        """
        ordered: dict[str, None] = {}
        for pattern, _ in self.keyed:
            ordered.update(dict.fromkeys(key for key in keys if key == pattern or fnmatchcase(key, pattern)))
            if not _WILD.intersection(pattern):
                ordered[pattern] = None
        return list(ordered) if keys else list(dict.fromkeys(pattern for pattern, _ in self.keyed))


def _checked(metric: object, where: str) -> Any:
    if not callable(metric):
        raise UsageError(
            f"{where}: {metric!r} is no metric; write accuracy(), with parentheses, or a function of scores"
        )
    # `accuracy` without its parentheses is a slip that would otherwise show after the last sample.
    return metric() if is_factory(metric) else metric


class Stream:
    """Takes the (reduced) scores of one scorer and keeps only what its metrics need.

    Args:
        scorer: the scorer's name.
        plan: its metrics.
        reducer: the reducer's name, if it is to be shown.
        params: the scorer's arguments, for the log.
    """

    def __init__(self, scorer: str, plan: MetricPlan, reducer: str | None, params: dict[str, Any]) -> None:
        self._scorer = scorer
        self._plan = plan
        self._reducer = reducer
        self._params = params
        self._total = self._unscored = 0
        self._whole = None if plan.whole is None else Cell(plan.whole)
        self._keys: dict[str, Cell | None] = {}
        self._places: dict[str, tuple[float, int]] = {}
        self._error: Exception | None = None
        self._reduction_error: Exception | None = None
        cells = [Cell(metrics) for metrics in [plan.whole or [], *(some for _, some in plan.keyed)]]
        self.wants_whole = self._whole is not None and self._whole.wants_reduced
        """Whether a metric wants the reduced scores themselves, not parts of them."""
        self.wants_unreduced = any(cell.wants_unreduced for cell in cells)
        self.values_only = all(cell.values_only for cell in cells)

    @property
    def keyed(self) -> bool:
        """Whether there are metrics of keys of dicts."""
        return bool(self._plan.keyed)

    def wants_part(self, key: str) -> bool | None:
        """Whether a metric wants the reduced scores of a key of dicts; ``None``: the key has no metrics."""
        cell = self._keys[key] if key in self._keys else Cell(self._plan.of_key(key))
        return cell.wants_reduced if cell is not None and cell.names else None

    def add(self, sample: SampleScore, texts: Mapping[str, int] = _NO_TEXTS) -> None:
        """Take a score into account.

        Args:
            sample: the score; NaN counts as none, also of a key.
            texts: of which keys it has no number, in some or all epochs, since they are text: how many epochs.
        """
        self._total += 1
        value = sample.score.value
        if type(value) is float and value != value:
            self._unscored += 1
            self.missed(sample.sample_metadata, sample.position, None)
            return
        if self._whole is not None:
            self._whole.add(sample)
        if self._plan.keyed:
            for cell, part in self._parts(sample, texts):
                cell.add(part)

    def missed(self, metadata: Mapping[str, Any] | None, position: int | None, epochs: int | None) -> None:
        """Note a sample without a score, or with ``epochs`` too few."""
        if self._whole is not None:
            self._whole.missed(metadata or {}, math.inf if position is None else position, epochs)

    def fail(self, error: Exception) -> None:
        """The epochs of a sample can't be reduced to one score: no metric of those would be true."""
        self._reduction_error = self._reduction_error or error

    def add_unreduced(self, sample: SampleScore) -> None:
        """Take the score of one epoch into account, in the metrics that want those."""
        if is_nan(sample.score.value):
            return
        if self._whole is not None:
            self._whole.add_unreduced(sample)
        if self._plan.keyed:
            for cell, part in self._parts(sample):
                cell.add_unreduced(part)

    def _parts(self, sample: SampleScore, texts: Mapping[str, int] = _NO_TEXTS) -> Iterator[tuple[Cell, SampleScore]]:
        score = sample.score
        if not isinstance(score.value, dict):
            keys = ", ".join(repr(pattern) for pattern, _ in self._plan.keyed)
            self._error = self._error or UsageError(
                f"the scorer {self._scorer} has metrics for the keys {keys}, but gave {score.value!r} for sample "
                f"{sample.sample_id!r}: return a dict with these keys as the score's value, or give a plain list of "
                f"metrics"
            )
            return
        position = math.inf if sample.position is None else sample.position
        for place, (key, value) in enumerate(score.value.items()):
            cell = self._cell(key, (position, place))
            if cell is None:
                continue
            of_text = texts.get(key, 0)
            cell.texts += of_text
            if is_nan(value):
                cell.missing += 1
                cell.nan += not of_text
            else:
                # A missing value of a key counts as 0, as it does when epochs are reduced.
                part = score.model_copy(update={"value": 0.0 if value is None else value})
                yield cell, replace(sample, score=part)

    def _cell(self, key: str, place: tuple[float, int]) -> Cell | None:
        if key not in self._keys:
            metrics = self._plan.of_key(key)
            self._keys[key] = Cell(metrics, keyed=True) if metrics else None
            self._places[key] = place
        elif place < self._places[key]:
            self._places[key] = place
        return self._keys[key]

    def results(self, complete: bool) -> tuple[list[EvalScore], list[MetricFailure]]:
        """A row for the whole score and one for each key, and the metrics that failed, which those lack.

        Args:
            complete: every sample that was planned was added, or noted as missing.
        """
        failed: list[MetricFailure] = []
        rows = [] if self._whole is None else [self._row(self._scorer, self._whole, complete, failed)]
        # Keys in the order of the samples, not of their ends.
        keys = self._plan.key_order(sorted(self._keys, key=self._places.__getitem__))
        for key in keys:
            cell = self._keys.get(key) or Cell(self._plan.of_key(key), keyed=True)
            row = self._row(key, cell, False, failed)
            no_key = self._total - self._unscored - cell.scored - cell.missing
            missing = {
                "unscored:no_key": no_key,
                "unscored:nan": cell.nan,
                f"unscored:{NOT_A_NUMBER}": cell.texts,
            }
            if missing := {kind: count for kind, count in missing.items() if count}:
                row.metadata = {"proctor": {"missing": missing}}
            rows.append(row)
        return rows, failed

    def _row(self, name: str, cell: Cell, complete: bool, failed: list[MetricFailure]) -> EvalScore:
        metrics, errors = cell.metrics(complete)
        error = self._reduction_error or (None if cell is self._whole else self._error)
        if error is not None:
            errors = [(metric, error) for metric in cell.names]
            metrics = {}
        failed += [MetricFailure(self._scorer, name, metric, self._reducer, each) for metric, each in errors]
        return EvalScore(
            name=name,
            scorer=self._scorer,
            reducer=self._reducer,
            scored_samples=cell.scored,
            unscored_samples=self._total - cell.scored,
            params=self._params,
            metrics=metrics,
        )

    def running(self) -> Iterator[tuple[str, float]]:
        """The metrics so far, those of keys as ``key/metric``."""
        if self._whole is not None:
            yield from self._whole.running()
        for key, cell in self._keys.items():
            if cell is not None:
                for label, value in cell.running():
                    yield f"{key}/{label}", value
