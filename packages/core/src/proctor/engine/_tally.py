"""What the samples of a unit came to: scores, errors, outcomes by kind, tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from proctor.engine._progress import UnitProgress
from proctor.log import Outcomes
from proctor.schema import (
    EvalResults,
    EvalSample,
    EvalSampleScore,
    EvalSampleSummary,
    EvalStats,
    EvalStatus,
    ModelUsage,
    Score,
    add_usage,
)
from proctor.scorer import MetricFailure, ResultsBuilder, scorer_names

__all__ = ["Tally"]


class Tally:
    """Adds up the samples of a unit as they end; a screen sees the counts in ``progress``.

    Those of earlier logs come from the writer's thread.

    Args:
        progress: of the unit.
        stats: whose tokens are counted.
        on_reduction: takes each sample's score reduced over epochs: scorer, reducer, score.
    """

    def __init__(
        self,
        progress: UnitProgress,
        stats: EvalStats,
        on_reduction: Callable[[str, str | None, EvalSampleScore], None],
    ) -> None:
        self._unit = unit = progress.unit
        self._progress = progress
        self._stats = stats
        self.scorers = dict(zip(scorer_names(unit.scorers), unit.scorers, strict=True))
        """The unit's scorers by the names that their scores have."""
        self._running: tuple[tuple[str, float], ...] = ()
        self._stale = False
        self._lock = threading.Lock()
        if unit.options.score_display:
            progress.on_metrics(self.running)
        self._results = ResultsBuilder(
            unit.scorers,
            metrics=unit.task.metrics,
            reducers=unit.reducers,
            epochs=unit.epochs,
            on_reduction=on_reduction,
        )
        self._outcomes = Outcomes(list(self.scorers), self._results.no_number)
        progress.outcomes, progress.errors = self._outcomes.kinds, self._outcomes.errors

    def add(self, sample: EvalSample, position: int) -> None:
        """Count a sample that ended, in an error or not; ``position`` is its place in the dataset's order."""
        with self._lock:
            self._record(sample)
            if sample.error is not None:
                self._progress.failed(sample.error)
                self._results.add(sample.id, sample.epoch, None, sample.metadata, position=position)
            else:
                self._results.add(sample.id, sample.epoch, sample.scores, sample.metadata, position=position)
                self._stale = True

    def add_reused(self, row: Mapping[str, Any], sample: Mapping[str, Any], position: int) -> None:
        """Count a sample that an earlier run completed.

        Args:
            row: the fields of its summary.
            sample: its own fields where metrics may look at what a summary has shortened (see ``values_only``).
            position: its place in the dataset's order.
        """
        scores = {name: _score(score) for name, score in (sample.get("scores") or {}).items()}
        found = EvalSampleSummary.trusted(
            id=row["id"],
            epoch=row["epoch"],
            input="",
            target="",
            metadata={},
            scores=scores,
            model_usage=_usage(row.get("model_usage")),
            role_usage=_usage(row.get("role_usage")),
            limit=row.get("limit"),
            retries=row.get("retries"),
            stop_reason=row.get("stop_reason"),
        )
        with self._lock:
            self._outcomes.add(found)
            self._add_usage(found)
            self._results.add(found.id, found.epoch, scores, sample.get("metadata"), position=position)
            self._stale = True

    @property
    def values_only(self) -> bool:
        """Whether summaries have all that the metrics need."""
        return self._results.values_only

    def add_cancelled(self, sample: EvalSample) -> None:
        """Count a sample that did not come to its end."""
        with self._lock:
            self._record(sample)

    def add_usage(self, sample: EvalSample) -> None:
        """Count the tokens of a sample alone: one that is run again was paid for, whatever comes of it then."""
        with self._lock:
            self._add_usage(sample)

    def _add_usage(self, sample: EvalSample | EvalSampleSummary) -> None:
        self._progress.add(sample)
        add_usage(self._stats.model_usage, sample.model_usage)
        add_usage(self._stats.role_usage, sample.role_usage)

    @property
    def too_many_errors(self) -> bool:
        """Whether so many samples failed that no more should be run."""
        policy = self._unit.policy
        return not policy.continue_on_fail and policy.exceeded(self._errors, self._unit.total)

    def status(self) -> EvalStatus:
        """How the unit ended, when nothing ended it early."""
        if self._errors and not self._outcomes.completed:
            return "error"  # whatever may be tolerated: when nothing came through, something broke
        return "error" if self._unit.policy.exceeded(self._errors, self._planned) else "success"

    def results(self) -> EvalResults:
        """The scores, with the outcomes in ``metadata``."""
        results = self._results.results(self._planned, self._outcomes.completed)
        self._outcomes.complete(results, self._unit.total)
        return results

    def running(self) -> tuple[tuple[str, float], ...]:
        """The scores so far; may be asked on any thread.

        They are computed when a screen asks, not when a sample ends: a burst of samples must not leave an old score
        standing. A screen never waits for them; while a sample is being added it gets those of before.
        """
        if self._stale and self._lock.acquire(blocking=False):
            try:
                self._stale = False
                self._running = tuple(self._results.running())
            finally:
                self._lock.release()
        return self._running

    @property
    def failures(self) -> list[MetricFailure]:
        """The metrics that ``results`` could not compute."""
        return self._results.failures

    def outcomes(self, *, scored: bool = False) -> dict[str, int]:
        """How many samples ended in which way.

        Args:
            scored: count those with a score, too: results, which say it for each scorer, are missing.
        """
        return self._outcomes.counts(self._unit.total, scored=scored)

    @property
    def _errors(self) -> int:
        return self._outcomes.errors.total()

    @property
    def _planned(self) -> int:
        return self._outcomes.recorded if self._unit.total is None else self._unit.total

    def _record(self, sample: EvalSample) -> None:
        self._progress.recorded += 1
        self._outcomes.add(sample)
        self._add_usage(sample)


def _usage(found: Mapping[str, Any] | None) -> dict[str, ModelUsage]:
    return {
        name: usage if isinstance(usage, ModelUsage) else ModelUsage.model_validate(usage)
        for name, usage in (found or {}).items()
    }


def _score(found: Any) -> Score | None:
    if found is None or isinstance(found, Score):
        return found
    try:
        return Score.model_validate(found)
    except ValidationError:  # lone surrogates, which pydantic refuses in any text
        return Score.trusted(**found)
