"""What the samples of a unit came to: scores, errors, outcomes by kind, tokens."""

from __future__ import annotations

import time
from collections.abc import Callable

from proctor.engine._progress import UnitProgress
from proctor.schema import EvalResults, EvalSample, EvalSampleScore, EvalStats, EvalStatus, ModelUsage
from proctor.scorer import ResultsBuilder, scorer_names

__all__ = ["Tally"]

_CUT_SHORT = frozenset({"content_filter", "max_tokens", "model_length"})  # replies that are scored but were not whole
_NO_SCORE = "no_score"  # the scorer returned None
_SHOWN = 0.1  # seconds between two running scores


class Tally:
    """Adds up the samples of a unit as they end; a screen sees the counts in ``progress``.

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
        self._errors = self._recorded = self._completed = self._scored = 0
        self._scores_due = 0.0
        self._results = ResultsBuilder(
            unit.scorers,
            metrics=unit.task.metrics,
            reducers=unit.reducers,
            epochs=unit.epochs,
            on_reduction=on_reduction,
        )

    def add(self, sample: EvalSample, position: int) -> None:
        """Count a sample that ended, in an error or not; ``position`` is its place in the dataset's order."""
        self._record(sample)
        if sample.error is not None:
            self._errors += 1
            self._progress.failed(sample.error)
            self._results.add(sample.id, sample.epoch, None, position=position)
        else:
            self._completed += 1
            self._results.add(sample.id, sample.epoch, sample.scores, sample.metadata, position=position)
            self._note_outcome(sample)
            self._show_scores()

    def add_cancelled(self, sample: EvalSample) -> None:
        """Count a sample that did not come to its end."""
        self._progress.outcomes["cancelled"] += 1
        self._record(sample)

    def add_usage(self, sample: EvalSample) -> None:
        """Count the tokens of a sample alone: one that is run again was paid for, whatever comes of it then."""
        self._progress.add(sample)
        for total, used in ((self._stats.model_usage, sample.model_usage), (self._stats.role_usage, sample.role_usage)):
            for name, usage in used.items():
                known = total.get(name)
                total[name] = ModelUsage() + usage if known is None else known.accumulate(usage)

    @property
    def too_many_errors(self) -> bool:
        """Whether so many samples failed that no more should be run."""
        policy = self._unit.policy
        return not policy.continue_on_fail and policy.exceeded(self._errors, self._unit.total)

    def status(self) -> EvalStatus:
        """How the unit ended, when nothing ended it early."""
        if self._errors and not self._completed:
            return "error"  # whatever may be tolerated: when nothing came through, something broke
        return "error" if self._unit.policy.exceeded(self._errors, self._planned) else "success"

    def results(self) -> EvalResults:
        """The scores, with the outcomes in ``metadata``.

        Raises:
            Exception: what a metric of the task's own raised.
        """
        results = self._results.results(self._planned, self._completed)
        results.metadata = {**(results.metadata or {}), "proctor": {"outcomes": self.outcomes()}}
        return results

    def outcomes(self, *, scored: bool = False) -> dict[str, int]:
        """How many samples ended in which way.

        Args:
            scored: count those with a score, too: results, which say it for each scorer, are missing.
        """
        counts = {"total": self._planned, "completed": self._completed, **self._progress.outcomes}
        if scored:
            counts["scored"] = self._scored
        counts |= {f"error:{kind}": count for kind, count in self._progress.errors.items()}
        if self._progress.retried:
            counts["retried"] = self._progress.retried
        if self._planned > self._recorded:
            counts["not_run"] = self._planned - self._recorded
        return counts

    @property
    def _planned(self) -> int:
        return self._recorded if self._unit.total is None else self._unit.total

    def _record(self, sample: EvalSample) -> None:
        self._progress.recorded += 1
        self._recorded += 1
        self.add_usage(sample)

    def _show_scores(self) -> None:
        """Bring the running scores up to date, as often as a screen can show them."""
        now = time.monotonic()
        if self._unit.options.score_display and now >= self._scores_due:
            self._progress.metrics = tuple(self._results.running())
            self._scores_due = now + _SHOWN

    def _note_outcome(self, sample: EvalSample) -> None:
        outcomes = self._progress.outcomes
        if sample.limit is not None:
            outcomes[f"limit:{sample.limit.type}"] += 1
        if sample.output.choices and sample.output.stop_reason in _CUT_SHORT:
            outcomes[f"stop:{sample.output.stop_reason}"] += 1
        scores = sample.scores or {}
        scored = False
        for name in self.scorers:
            score = scores.get(name)
            if score is None:
                outcomes[f"unscored:{_NO_SCORE}"] += 1
            elif score.value != score.value:  # NaN: it could not be scored
                outcomes[f"unscored:{score.reason or 'unknown'}"] += 1
            else:
                scored = True
        self._scored += scored
