"""Scores kept on disk, for metrics that want them all at once."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections.abc import Iterator
from typing import Self

from proctor.schema import Value
from proctor.scorer._types import Accumulator, Metric, SampleScore

_MEMORY = 1 << 20
_BATCH = 64


class ScoreSpool:
    """Scores in a temporary file (in memory up to 1 MiB), read back in order.

    A score in memory takes more than a kilobyte; a hundred thousand would break the budget of 200 bytes each.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY)  # noqa: SIM115  # closed with this object
        weakref.finalize(self, self._file.close)
        self._batch: list[SampleScore] = []
        self._unpicklable: dict[int, SampleScore] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, score: SampleScore) -> None:
        """Add a score at the end."""
        self._batch.append(score)
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
            for score in pickle.load(self._file):
                yield self._unpicklable[index] if score is None else score
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
        return self._metric(list(self._scores))


def accumulator_of(metric: Metric) -> Accumulator:
    """An accumulator for ``metric``: its own if it has one, else one that collects the scores on disk."""
    make = getattr(metric, "accumulator", None)
    if callable(make):
        made = make()
        if isinstance(made, Accumulator):
            return made
    return _Collected(metric)
