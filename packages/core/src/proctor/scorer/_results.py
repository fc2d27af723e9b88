from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from proctor.registry import is_registered, loggable, registry_info
from proctor.schema import EvalResults, EvalSampleScore, EvalScore, EvalScorer, HeadlineMetric, Score, assembled
from proctor.scorer._cell import MetricFailure
from proctor.scorer._decorators import logged_params, scorer_metrics, short_name
from proctor.scorer._no_numbers import NoNumbers, score_fields, with_value
from proctor.scorer._reducers import check_reducers, is_nan, makes_numbers, mean_score, reducer_name
from proctor.scorer._stream import MetricPlan, Stream
from proctor.scorer._types import Metric, MetricsSpec, SampleScore, Scorer, ScoreReducer
from proctor.scorer._value import to_float

OnReduction: TypeAlias = Callable[[str, str | None, EvalSampleScore], None]

# A sample's id, metadata and position.
_About: TypeAlias = tuple[int | str, dict[str, Any] | None, int | None]

_RUNNING = 8


class ResultsBuilder:
    """Takes the scores of samples as they end, in any order, and gives the results at the end.

    It keeps the scores of samples of which epochs are still missing, and of the others only what the metrics need.
    Call it from one thread at a time.

    Args:
        scorers: the task's scorers.
        metrics: the task's own metrics, in place of those of every scorer.
        reducers: how epochs are reduced; ``None``: by their mean, which the results then do not mention; empty: not at
            all, so that each epoch counts as a sample.
        epochs: how often each sample is run.
        on_reduction: called with scorer, reducer and reduced score of each sample, once it is known.

    Raises:
        UsageError: if something is no scorer or metric, or a reducer needs more epochs than there are.
    """

    def __init__(
        self,
        scorers: Sequence[Scorer],
        metrics: MetricsSpec | None = None,
        reducers: Sequence[ScoreReducer] | None = None,
        epochs: int = 1,
        on_reduction: OnReduction | None = None,
    ) -> None:
        check_reducers(reducers or (), epochs)
        self._epochs = epochs
        self._on_reduction = on_reduction
        self._by_mean = reducers is None
        self._reducers: list[tuple[str | None, ScoreReducer]] = (
            [(None, mean_score())] if reducers is None else [(reducer_name(one), one) for one in reducers]
        )
        self._streams: dict[str, list[Stream]] = {}
        for name, scorer in zip(scorer_names(scorers), scorers, strict=True):
            plan = MetricPlan(scorer_metrics(scorer) if metrics is None else metrics, f"the scorer {name}")
            params = logged_params(scorer)
            labels = [label for label, _ in self._reducers] or [None]
            self._streams[name] = [Stream(name, plan, label, params) for label in labels]
        self._unreduced = [
            (name, stream) for name, some in self._streams.items() for stream in some if stream.wants_unreduced
        ]
        self.values_only = all(stream.values_only for some in self._streams.values() for stream in some) and all(
            getattr(reducer, "__module__", None) == mean_score.__module__ for _, reducer in self._reducers
        )
        """Whether nothing but ids, epochs and the values of scores decides the metrics."""
        self._open: dict[int | str, tuple[_About, list[tuple[int, dict[str, Score | None]]]]] = {}
        # What makes numbers of all scores would count text which is none as 0 whatever the metrics are.
        self._by_number = [self._by_mean or makes_numbers(reducer) for _, reducer in self._reducers]
        first = {name: streams[0] for name, streams in self._streams.items()} if any(self._by_number) else {}
        self._no_numbers = NoNumbers(
            {name for name, stream in first.items() if stream.wants_whole},
            {name: stream.wants_part for name, stream in first.items() if stream.keyed},
        )
        self._added = 0
        self.failures: list[MetricFailure] = []
        """The metrics that could not be computed, once ``results`` has said so."""

    def add(
        self,
        sample_id: int | str,
        epoch: int,
        scores: Mapping[str, Score | None] | None,
        sample_metadata: dict[str, Any] | None = None,
        position: int | None = None,
    ) -> None:
        """Take one sample of one epoch into account.

        Args:
            sample_id: the sample's id.
            epoch: which epoch, from 1.
            scores: its scores by scorer; ``None`` (of all, or of one) when there is none, as after an error.
            sample_metadata: the sample's metadata, for metrics by group.
            position: the sample's place in the order of the run, by which groups and keys are put in order; the id by
                default, if it is a number.
        """
        if position is None and isinstance(sample_id, int):
            position = sample_id
        given = scores or {}
        self._added += 1
        about = (sample_id, sample_metadata, position)
        for name, stream in self._unreduced:
            if (score := given.get(name)) is not None:
                stream.add_unreduced(_sample_score(score, name, about))
        if not self._reducers:
            for name, streams in self._streams.items():
                if (score := given.get(name)) is not None:
                    streams[0].add(_sample_score(score, name, about))
                else:
                    streams[0].missed(sample_metadata, position, None)
        elif self._epochs == 1:
            for name in self._streams:
                score = given.get(name)
                self._reduce(name, [] if score is None else [score], about)
        else:
            _, seen = self._open.setdefault(sample_id, (about, []))
            seen.append((epoch, dict(given)))
            if len(seen) >= self._epochs:
                self._close(sample_id)

    def no_number(self, scorer: str, score: Score) -> bool:
        """Whether a score is text that is no number, where one is needed: it counts as missing."""
        return self._no_numbers.is_one(scorer, score)

    def _close(self, sample_id: int | str) -> None:
        # By epoch, not in the order in which they ended: which answer, metadata or tied score comes first must not
        # depend on timing.
        about, seen = self._open.pop(sample_id)
        epochs = sorted(seen, key=lambda one: one[0])
        for name in self._streams:
            scores = [score for _, given in epochs if (score := given.get(name)) is not None]
            self._reduce(name, scores, about)

    def _reduce(self, name: str, scores: list[Score], about: _About) -> None:
        numbers, texts = self._no_numbers.read(name, scores, about[0])
        for (label, reducer), by_number, stream in zip(
            self._reducers, self._by_number, self._streams[name], strict=True
        ):
            given = numbers if by_number else scores
            if self._epochs > 1 or not given:
                present = sum(not is_nan(score.value) for score in given)
                lost = None if not given else self._epochs - present if present else 0  # a stream sees NaN by itself
                if lost != 0:
                    stream.missed(about[1], about[2], lost)
                if not given:
                    continue
            try:
                # The usual case, a single epoch by its mean, without the general machinery.
                reduced = _mean_of_one(given[0]) if self._by_mean and len(given) == 1 else reducer(given)
            except Exception as error:
                error.add_note(f"while the epochs of sample {about[0]!r} were reduced for the scorer {name}")
                stream.fail(error)
                continue
            stream.add(_sample_score(reduced, name, about), texts if by_number else {})
            if self._on_reduction is not None:
                self._on_reduction(name, label, _logged_score(reduced, about[0]))

    def results(self, total_samples: int, completed_samples: int) -> EvalResults:
        """The results; to be asked for once, after the last ``add``.

        Args:
            total_samples: samples times epochs.
            completed_samples: how many ended without an error.

        What could not be computed is left out and named in ``metadata["proctor"]["failed_metrics"]``: the other metrics
        were paid for, too.
        """
        for sample_id in list(self._open):
            self._close(sample_id)
        rows: list[EvalScore] = []
        self.failures = []
        for stream in (stream for streams in self._streams.values() for stream in streams):
            some, failed = stream.results(self._added >= total_samples)
            rows += some
            self.failures += failed
        headline = None
        # What a log shows first is of its first row, as the peer has it, unless a metric that failed left that empty.
        candidates = rows if self.failures else rows[:1]
        first = next((row for row in candidates if row.metrics), None)
        if first is not None:
            headline = HeadlineMetric(
                scorer=first.scorer, score=first.name, metric=next(iter(first.metrics)), reducer=first.reducer
            )
        facts = [failure.facts() for failure in self.failures]
        return EvalResults(
            total_samples=total_samples,
            completed_samples=completed_samples,
            scores=rows,
            headline=headline,
            metadata={"proctor": {"failed_metrics": facts}} if facts else None,
        )

    def running(self) -> list[tuple[str, float]]:
        """The metrics so far of the first reducer, at most eight: cheap ones only, for a live screen."""
        several = len(self._streams) > 1
        labelled = (
            (f"{name}/{label}" if several else label, value)
            for name, streams in self._streams.items()
            for label, value in streams[0].running()
        )
        return list(islice(labelled, _RUNNING))


def _mean_of_one(score: Score) -> Score:
    value = score.value
    if type(value) is float:
        return score if not score.history else with_value(score, value)
    if isinstance(value, dict):
        return with_value(score, {key: part if is_nan(part) else to_float(part) for key, part in value.items()})
    if isinstance(value, list):
        return with_value(score, [part if is_nan(part) else to_float(part) for part in value])
    return with_value(score, to_float(value))


def _sample_score(score: Score, scorer: str, about: _About) -> SampleScore:
    return SampleScore(score, about[0], about[1], scorer, about[2])


def _logged_score(score: Score, sample_id: int | str) -> EvalSampleScore:
    fields = score_fields(score, score.value)
    fields["sample_id"] = sample_id
    return assembled(EvalSampleScore, fields)


def scorer_names(scorers: Sequence[Scorer]) -> list[str]:
    """The names of scorers in a sample's scores: their own, with a number after it where two share one."""
    names: list[str] = []
    for scorer in scorers:
        base = name = short_name(scorer)
        number = 0
        while name in names:
            number += 1
            name = f"{base}{number}"
        names.append(name)
    return names


def eval_scorers(scorers: Sequence[Scorer], metrics: MetricsSpec | None = None) -> list[EvalScorer]:
    """Scorers as a log declares them.

    Args:
        scorers: the task's scorers.
        metrics: the task's own metrics, if they take the place of those of the scorers.
    """
    declared = []
    for scorer in scorers:
        info = registry_info(scorer) if is_registered(scorer, "scorer") else None
        declared.append(
            EvalScorer(
                name=short_name(scorer),
                options=logged_params(scorer),
                metrics=metric_definitions(scorer_metrics(scorer) if metrics is None else metrics),
                metadata=dict(loggable(info.attribs.get("metadata") or {})) if info else {},
            )
        )
    return declared


def metric_definitions(metrics: MetricsSpec) -> Any:
    """Metrics as a log declares them: name and arguments of each, in the lists and dicts in which they were given."""
    if isinstance(metrics, Mapping):
        return {key: [_definition(metric) for metric in some] for key, some in metrics.items()}
    return [
        {key: [_definition(one) for one in some] for key, some in metric.items()}
        if isinstance(metric, Mapping)
        else _definition(metric)
        for metric in metrics
    ]


def _definition(metric: Metric) -> dict[str, Any]:
    return {"name": short_name(metric), "options": logged_params(metric)}
