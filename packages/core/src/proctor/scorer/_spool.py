"""Scores kept on disk, for metrics that want them all at once."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any, Self, TypeAlias

from proctor.schema import Score, Value
from proctor.scorer._types import Accumulator, Metric, SampleScore

_MEMORY = 1 << 20
_BATCH = 64


_Row: TypeAlias = tuple[Any, ...]


def _row(sample: SampleScore) -> _Row:
    # Plain data pickle in a fifth of the time and space that pydantic models take.
    score = sample.score
    return (
        sample.sample_id,
        sample.sample_metadata,
        sample.scorer,
        sample.position,
        score.value,
        score.answer,
        score.explanation,
        score.reason,
        score.metadata,
        score.history,
    )


def _score(row: _Row) -> SampleScore:
    sample_id, sample_metadata, scorer, position, value, answer, explanation, reason, metadata, history = row
    score = Score(value=value, answer=answer, explanation=explanation, reason=reason, metadata=metadata)
    score.history = history
    return SampleScore(score, sample_id, sample_metadata, scorer, position)


class ScoreSpool:
    """Scores in a temporary file (in memory up to 1 MiB), read back in order.

    A score in memory takes more than a kilobyte; a hundred thousand would break the budget of 200 bytes each.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY)  # noqa: SIM115  # closed with this object
        weakref.finalize(self, self._file.close)
        self._batch: list[_Row] = []
        self._unpicklable: dict[int, _Row] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, score: SampleScore) -> None:
        """Add a score at the end."""
        self._batch.append(_row(score))
        self._count += 1
        if len(self._batch) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        start = self._count - len(self._batch)
        try:
            data = pickle.dumps(self._batch, pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever an author put into the metadata
            data = pickle.dumps([None] * len(self._batch), pickle.HIGHEST_PROTOCOL)
            self._unpicklable.update(enumerate(self._batch, start))
        self._file.write(data)
        self._batch = []

    def __iter__(self) -> Iterator[SampleScore]:
        if self._batch:
            self._flush()
        self._file.seek(0)
        index = 0
        while index < self._count:
            for row in pickle.load(self._file):
                yield _score(self._unpicklable[index] if row is None else row)
                index += 1
        self._file.seek(0, 2)


class _Collected(Accumulator):
    """Any metric as an accumulator: collects the scores, and calls the metric with all of them."""

    live = False

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._scores = ScoreSpool()

    def add(self, score: SampleScore) -> None:
        self._scores.append(score)

    def merge(self, other: Self) -> None:
        for score in other._scores:
            self._scores.append(score)

    def result(self) -> Value:
        scores = list(self._scores)
        if all(score.position is not None for score in scores):
            # What depends on the order (names of values, a float sum) must not depend on which sample ended first.
            scores.sort(key=lambda score: score.position or 0)
        return self._metric(scores)


def accumulator_of(metric: Metric) -> Accumulator:
    """An accumulator for ``metric``: its own if it has one, else one that collects the scores on disk."""
    make = getattr(metric, "accumulator", None)
    if callable(make):
        made = make()
        if isinstance(made, Accumulator):
            return made
    return _Collected(metric)
