"""What became of the samples: the one place that says what a sample counts as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from proctor.schema import (
    NOT_A_NUMBER,
    EvalError,
    EvalResults,
    EvalSample,
    EvalSampleSummary,
    EvalSpec,
    Score,
    own_metadata,
)

__all__ = ["CANCELLED", "Outcomes", "cut_short", "error_kind", "planned_samples"]

_CUT_SHORT = frozenset({"content_filter", "max_tokens", "model_length"})  # replies that are scored but were not whole
_NO_SCORE = "no_score"  # the scorer returned None
_NAN = "nan"  # it gave NaN without a word
CANCELLED = ("CancelledError", "Cancelled")
"""The kinds of error of a sample that was not left to come to its end."""


def error_kind(error: EvalError | str) -> str:
    """The exception's class name, of an error or its message."""
    return (error if isinstance(error, str) else error.message).partition("(")[0]


class Outcomes:
    """Counts samples by what became of them.

    Each sample is one of ``invalidated``, ``cancelled``, ``error:<kind>`` and completed. Completed ones may also count
    as ``limit:<kind>``, ``stop:<reason>`` (a reply that was cut short) and ``unscored:<reason>``, once for each scorer
    that gave no score.

    Args:
        scorers: the names of the scorers whose scores are looked for.
        no_number: told a scorer's name and its score, says whether that can't be counted: text that is no number.
    """

    def __init__(self, scorers: Sequence[str], no_number: Callable[[str, Score], bool] | None = None) -> None:
        self._no_number = no_number
        self.kinds: Counter[str] = Counter()
        """What befell samples that completed, and those that were cancelled or invalidated."""
        self.errors: Counter[str] = Counter()
        """Failed samples by the kind of their error."""
        self.recorded = self.completed = self.scored = self.retried = 0
        self._missing: dict[str, Counter[str]] = {name: Counter() for name in scorers}

    def add(self, sample: EvalSample | EvalSampleSummary) -> None:
        """Count a sample that ended, however it did."""
        self.recorded += 1
        self.retried += _tries(sample) > 0
        kind = _kind(sample)
        if kind is not None:
            family, _, name = kind.partition(":")
            if family == "error":
                self.errors[name] += 1
            else:
                self.kinds[kind] += 1
            for missing in self._missing.values():
                missing[kind] += 1
            return
        self.completed += 1
        if sample.limit is not None:
            self.kinds[f"limit:{sample.limit if isinstance(sample.limit, str) else sample.limit.type}"] += 1
        if (stop := cut_short(sample)) is not None:
            self.kinds[f"stop:{stop}"] += 1
        scores = sample.scores or {}
        scored = False
        for name, missing in self._missing.items():
            score = scores.get(name)
            if score is not None and (value := score.value) == value:
                if self._no_number is None or type(value) is not str or not self._no_number(name, score):
                    scored = True
                    continue
                reason = f"unscored:{NOT_A_NUMBER}"
            else:
                # NaN: the sample could not be scored.
                reason = f"unscored:{_NO_SCORE if score is None else score.reason or _NAN}"
            self.kinds[reason] += 1
            missing[reason] += 1
        self.scored += scored

    def counts(self, planned: int | None = None, *, scored: bool = False) -> dict[str, int]:
        """How many samples ended in which way; kinds that befell none are left out.

        Args:
            planned: how many were to be run, when that is known: samples times epochs.
            scored: count those with a score, too: for logs without results, which say it for each scorer.
        """
        total = max(planned or 0, self.recorded)
        counts = {"total": total, "completed": self.completed, **{k: n for k, n in self.kinds.items() if n}}
        if scored:
            counts["scored"] = self.scored
        counts |= {f"error:{kind}": count for kind, count in self.errors.items()}
        if self.retried:
            counts["retried"] = self.retried
        if total > self.recorded:
            counts["not_run"] = total - self.recorded
        return counts

    def complete(self, results: EvalResults, planned: int | None = None) -> None:
        """Put the counts into ``results``, and for each scorer whose metrics lack samples, why those are missing.

        ``metadata["proctor"]`` gets ``outcomes`` (see ``counts``) and, unless every score is there, ``partial``: for
        each scorer its missing scores by reason, samples times epochs.
        """
        total = max(planned or 0, self.recorded)
        results.total_samples, results.completed_samples = total, self.completed
        own: dict[str, Any] = dict(own_metadata(results))
        own["outcomes"] = self.counts(planned)
        partial = {name: reasons for name in self._missing if (reasons := self._why(name, total))}
        own.pop("partial", None)
        if partial:
            own["partial"] = partial
        results.metadata = {**(results.metadata or {}), "proctor": own}

    def _why(self, scorer: str, total: int) -> dict[str, int]:
        reasons = {kind: count for kind, count in self._missing[scorer].items() if count}
        if total > self.recorded:
            reasons["not_run"] = total - self.recorded
        return reasons


def planned_samples(spec: EvalSpec) -> int:
    """How many samples a run was to have, samples times epochs, as far as its log says."""
    dataset, limit = spec.dataset, spec.config.limit
    if dataset.sample_ids is not None:
        count = len(dataset.sample_ids)
    else:
        count = len(range(dataset.samples or 0)[slice(*limit) if isinstance(limit, list) else slice(limit)])
    return count * (spec.config.epochs or 1)


def _kind(sample: EvalSample | EvalSampleSummary) -> str | None:
    """What became of a sample that gives no scores; ``None`` of one that completed."""
    if sample.invalidation is not None:
        return "invalidated"
    if sample.error is None:
        return None
    kind = error_kind(sample.error)
    return "cancelled" if kind in CANCELLED else f"error:{kind}"


def cut_short(sample: EvalSample | EvalSampleSummary) -> str | None:
    """Why the model's last reply was not whole."""
    if isinstance(sample, EvalSampleSummary):
        return sample.stop_reason
    reason = sample.output.stop_reason
    return reason if reason in _CUT_SHORT else None


def _tries(sample: EvalSample | EvalSampleSummary) -> int:
    return len(sample.error_retries or ()) if isinstance(sample, EvalSample) else sample.retries or 0
