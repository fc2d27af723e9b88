"""The scoring of one log: samples one by one, their scores, and the log that has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

import anyio
from anyio import to_thread

from proctor.concurrency import tend_gates
from proctor.contracts import UsageError
from proctor.engine._edit_scores import log_reducers
from proctor.engine._failed_metrics import ending_without_metrics, settle_metrics
from proctor.engine._grading import Grading, ScoringStopped, TooManyFailures
from proctor.engine._identity import scored_metadata, scoring_identity
from proctor.engine._options import RunOptions
from proctor.log import (
    Grades,
    LogEdit,
    LogFile,
    Outcomes,
    ReductionSpool,
    SampleSpool,
    Store,
    kept_reductions,
    planned_samples,
    write_edited_log,
)
from proctor.model import Model
from proctor.schema import EvalLog, EvalResults, EvalSample, Score, ScoreEvent, SpanBeginEvent, add_usage
from proctor.scorer import (
    MetricsSpec,
    ResultsBuilder,
    Scorer,
    check_distinct,
    check_reducers,
    create_reducers,
    eval_scorers,
    scorer_names,
)
from proctor.solver import Target, TaskState, parse_answers

__all__ = ["Action", "ScoreJob", "Scorers", "Scoring"]

Action: TypeAlias = Literal["append", "overwrite"]
Scorers: TypeAlias = "str | Scorer | Sequence[str | Scorer] | None"

_AT_ONCE = 40  # samples; gates hold back what they ask of models


@dataclass(frozen=True)
class ScoreJob:
    """What ``score()`` was asked for."""

    path: str
    scorer: Scorers
    scorer_args: Mapping[str, Any]
    metrics: MetricsSpec | None
    action: Action
    output: str | None
    overwrite: bool
    model: str | None
    fresh: bool = False
    tell: Callable[[int, int], object] | None = None
    on_resume: Callable[[int], object] | None = None


class Scoring:
    """The scoring of one log: ``run``, then ``write``. What is graded is kept beside the log until that is written.

    Args:
        job: what is wanted.
        options: how samples and models are run.
        file: the log.
        header: its header, which becomes that of the scored log.
        made: the scorers.
        model: what ``get_model()`` gives them.
        roles: models in roles.

    Raises:
        UsageError: something is no scorer, or has no metric.
    """

    def __init__(
        self,
        job: ScoreJob,
        options: RunOptions,
        file: LogFile,
        header: EvalLog,
        made: Sequence[Scorer],
        model: Model | None,
        roles: Mapping[str, Model],
    ) -> None:
        self._job, self._options, self._file, self._log = job, options, file, header
        self._made = made
        self._roles = {role: roles[role] for role in options.model_roles}  # those in place of the log's
        declared = eval_scorers(made, job.metrics)
        self._keep = job.action == "append"
        former = _former_names(header) if self._keep else []
        self._scorers = dict(zip(_free_names(scorer_names(made), former), made, strict=True))
        for one, name in zip(declared, self._scorers, strict=True):
            one.name = name
        self._declared = declared
        self._identity = scoring_identity(header, self._scorers, model, roles)
        reducers = options.epochs_reducer
        reduced = log_reducers(header) if reducers is None else create_reducers(reducers)
        epochs = header.eval.config.epochs or 1
        check_reducers(reduced or (), epochs)
        if reducers is not None:
            check_distinct(reduced or ())
        self._grading: Grading | None = None
        self._samples, self._reductions = SampleSpool(), ReductionSpool()
        self._builder = ResultsBuilder(
            made, metrics=job.metrics, reducers=reduced, epochs=epochs, on_reduction=self._reduced
        )
        self._renamed = dict(zip(scorer_names(made), self._scorers, strict=True))
        shown = {name: own for own, name in self._renamed.items()}
        self._outcomes = Outcomes(
            [*former, *self._scorers], lambda name, score: self._builder.no_number(shown.get(name, ""), score)
        )
        self._places = {str(id): place for place, id in enumerate(header.eval.dataset.sample_ids or ())}
        self._multiple = any(step.params.get("multiple_correct") for step in header.plan.steps)

    def close(self) -> None:
        """Remove temporary files."""
        self._samples.close()
        self._reductions.close()

    async def run(self) -> None:
        """Score all samples, some of them at once; each is read when its turn comes.

        Raises:
            ScoringStopped: scorers failed on more samples than may.
            UsageError: a scorer was given something bad, or the same scoring goes on elsewhere.
        """
        self._grading = await to_thread.run_sync(self._begin)
        try:
            await self._all(self._grading)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._grades.stop)
            if isinstance(error, TooManyFailures):
                raise self.stopped(str(error)) from error
            raise

    def stopped(self, why: str, exit_code: int = 1) -> ScoringStopped:
        """The error that says what is kept and how to go on; ``run`` is over."""
        if self._grading is None:
            return ScoringStopped(f"{why} before any scorer was asked", exit_code)
        return self._grading.stopped(why, exit_code)

    def _begin(self) -> Grading:
        job, total = self._job, len(self._file.keys())
        self._grades = Grades(job.output or job.path, self._identity, self._log, fresh=job.fresh)
        if len(self._grades) and job.on_resume is not None:
            job.on_resume(len(self._grades))
        state = partial(_state, self._log, multiple=self._multiple)
        return Grading(self._scorers, self._options, self._grades, total, state, job.tell)

    async def _all(self, grading: Grading) -> None:
        keys = self._file.keys()
        queue = iter(keys)
        workers = self._options.max_samples or self._options.config.max_connections or _AT_ONCE
        try:
            async with anyio.create_task_group() as tending:
                tending.start_soon(tend_gates)
                async with anyio.create_task_group() as group:
                    for _ in range(min(workers, len(keys))):
                        group.start_soon(self._work, queue, grading)
                tending.cancel_scope.cancel()
        except BaseExceptionGroup as errors:
            _raise_own(errors)
            raise

    async def _work(self, queue: Iterator[tuple[str, int]], grading: Grading) -> None:
        for id, epoch in queue:
            await grading.ready()
            sample = await to_thread.run_sync(self._file.sample, id, epoch, "core")
            place = self._places.get(str(sample.id))
            if sample.error is not None and _scorer_failed(sample):
                sample.error = None  # its solver had come to its end; the transcript keeps what the scorer raised
            if sample.error is not None or sample.invalidation is not None:
                self._builder.add(sample.id, sample.epoch, None, sample.metadata, position=place)
                grading.count()
            else:
                scores = self._take(sample, await grading.grade(sample))
                own = {name: scores.get(shown) for name, shown in self._renamed.items()}
                self._builder.add(sample.id, sample.epoch, own, sample.metadata, position=place)
                await to_thread.run_sync(self._samples.add, sample)
            self._outcomes.add(sample)

    def _take(self, sample: EvalSample, grade: EvalSample) -> dict[str, Score]:
        """Put a grade into its sample, and return its scores in the order of the scorers."""
        found = grade.scores or {}
        scores = {name: found[name] for name in self._scorers if name in found}
        sample.scores = {**((sample.scores or {}) if self._keep else {}), **scores}
        sample.events = [*sample.events, *grade.events]
        stats = self._log.stats
        for used, *totals in (
            (grade.model_usage, sample.model_usage, stats.model_usage),
            (grade.role_usage, sample.role_usage, stats.role_usage),
        ):
            for total in totals:
                add_usage(total, used)
        return scores

    def _reduced(self, scorer: str, reducer: str | None, score: Any) -> None:
        self._reductions.add(self._renamed[scorer], reducer, score)

    def write(self) -> EvalLog:
        """Write the scored log, which has all grades then; blocks."""
        try:
            header = self._written()
        except BaseException:
            self._grades.stop()
            raise
        self._grades.remove()
        return header

    def _written(self) -> EvalLog:
        log, former = self._log, self._log.results or EvalResults()
        planned = former.total_samples or planned_samples(log.eval)
        fresh = self._builder.results(max(planned, self._outcomes.recorded), self._outcomes.completed)
        failed = [replace(one, scorer=self._renamed[one.scorer]) for one in self._builder.failures]
        ending = ending_without_metrics(log)
        for row in fresh.scores:
            row.name = self._renamed.get(row.name, row.name) if row.name == row.scorer else row.name
            row.scorer = self._renamed[row.scorer]
        if fresh.headline is not None and fresh.scores:
            fresh.headline.scorer, fresh.headline.score = fresh.scores[0].scorer, fresh.scores[0].name
        reductions = self._reductions
        if self._keep:
            reductions = kept_reductions(self._file)
            fresh.scores = [*former.scores, *fresh.scores]
            fresh.headline = former.headline or fresh.headline
            reductions.extend(self._reductions)
        fresh.early_stopping, fresh.logged_samples = former.early_stopping, former.logged_samples
        fresh.metadata = former.metadata
        self._outcomes.complete(fresh, planned)
        log.results = fresh
        settle_metrics(log, failed, ending, kept=self._keep)
        self._declare(log)
        try:
            return write_edited_log(
                self._file,
                LogEdit(log, self._samples, reductions),
                self._job.output,
                overwrite=self._job.overwrite,
            )
        finally:
            reductions.close()

    def _declare(self, log: EvalLog) -> None:
        """Say in the header which scorers there are, each with its own metrics."""
        spec = log.eval
        kept = list(spec.scorers or ()) if self._keep else []
        if kept and spec.metrics:
            for one in kept:
                one.metrics = spec.metrics
        spec.metrics = None
        replaced = self._made if not kept else ()
        path, output = self._job.path, self._job.output
        copy_of = None if output is None or output == path else PurePath(path).name
        spec.metadata = scored_metadata(log, replaced, self._roles, copy_of)
        spec.scorers = [*kept, *self._declared]


def _scorer_failed(sample: EvalSample) -> bool:
    """Whether the sample's error came out of one of its scorers, not of its solver or its cleanup."""
    judging = failed = False
    for event in sample.events:
        if isinstance(event, SpanBeginEvent):
            if event.parent_id is None:
                judging, failed = event.type == "scorers", False
            elif event.type == "scorer":
                failed = judging
        elif isinstance(event, ScoreEvent) and not event.intermediate:
            failed = False
    return failed


def _raise_own(errors: BaseExceptionGroup[BaseException]) -> None:
    """Raise the bad input, or the failures that are too many, among ``errors`` by itself."""
    found = errors.subgroup((UsageError, TooManyFailures))
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]  # type: ignore[assignment]  # a group holds errors or groups
    if found is not None:
        raise found


def _former_names(header: EvalLog) -> list[str]:
    rows = header.results.scores if header.results is not None else []
    return list(dict.fromkeys([*(row.scorer for row in rows), *(one.name for one in header.eval.scorers or ())]))


def _free_names(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """``names`` with a number behind those that are taken: the scores that are there keep theirs."""
    found: list[str] = []
    for name in names:
        free, number = name, 0
        while free in taken or free in found:
            number += 1
            free = f"{name}{number}"
        found.append(free)
    return found


def _state(log: EvalLog, sample: EvalSample, store: Store, *, multiple: bool) -> TaskState:
    """The state in which the sample was when it had been solved."""
    state = TaskState(
        model=log.eval.model,
        sample_id=sample.id,
        epoch=sample.epoch,
        input=sample.input,
        messages=list(sample.messages),
        target=Target(sample.target),
        choices=sample.choices,
        output=sample.output,
        completed=True,
        metadata=dict(sample.metadata),
        store=store,
        scores=dict(sample.scores or {}),
        sample_uuid=sample.uuid,
    )
    if sample.choices:  # which of them were chosen stands nowhere but in the answer
        chosen = parse_answers(sample.output.completion, len(sample.choices), multiple)
        for place in range(len(sample.choices)):
            state.choices.mark_choice(place, place in chosen)
    return state
