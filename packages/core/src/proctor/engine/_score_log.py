"""Score the samples of a finished log anew, without running them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, Unpack

import anyio
from anyio import to_thread

from proctor import plugins
from proctor.concurrency import Activity, begin_activity, run_gates, tend_gates
from proctor.contracts import UsageError
from proctor.engine._edit_scores import log_reducers
from proctor.engine._errors import eval_error
from proctor.engine._isolate import Isolated
from proctor.engine._load import find_scorer
from proctor.engine._loop import in_loop
from proctor.engine._options import RunOptions, connection_policy, resolve_options
from proctor.engine._run import of_this_loop
from proctor.engine._scored_with import log_models, log_scorers
from proctor.limits import SampleLimits, begin_limits
from proctor.log import (
    EvalLogInfo,
    LogEdit,
    LogFile,
    Outcomes,
    ReductionSpool,
    SampleSpool,
    Store,
    Transcript,
    begin_store,
    begin_transcript,
    check_free,
    finished_header,
    hold_eval_log,
    kept_reductions,
    open_log,
    span,
    write_edited_log,
)
from proctor.model import close_models, configure_model_logging, run_models, use_models
from proctor.schema import EvalLog, EvalOptions, EvalResults, EvalSample, ModelUsage, Score, ScoreEvent
from proctor.scorer import (
    MetricsSpec,
    ResultsBuilder,
    Scorer,
    check_reducers,
    create_reducers,
    eval_scorers,
    scorer_names,
)
from proctor.solver import Target, TaskState, parse_answers, set_sample_state

__all__ = ["SCORE_OPTIONS", "Action", "score", "score_async"]

SCORE_OPTIONS = (
    "model_roles",
    "model_args",
    "model_config",
    "model_base_url",
    "epochs_reducer",
    "max_samples",
    "max_connections",
    "adaptive_connections",
    "max_rpm",
    "max_tpm",
    "share",
    "max_retries",
    "timeout",
    "attempt_timeout",
    "max_subprocesses",
    "async_backend",
    "log_model_api",
    "log_images",
    "plugins",
    "disable_plugins",
)
"""The options of ``eval()`` that bear on scoring alone."""

Action: TypeAlias = Literal["append", "overwrite"]
LogPath: TypeAlias = "str | os.PathLike[str] | EvalLogInfo"
Scorers: TypeAlias = "str | Scorer | Sequence[str | Scorer] | None"

_AT_ONCE = 40  # samples; gates hold back what they ask of models
_FAILED = "scoring_failed"


@dataclass(frozen=True)
class _Job:
    """What ``score()`` was asked for."""

    path: str
    scorer: Scorers
    scorer_args: Mapping[str, Any]
    metrics: MetricsSpec | None
    action: Action
    output: str | None
    overwrite: bool
    model: str | None


def score(
    log: LogPath,
    scorer: Scorers = None,
    *,
    scorer_args: Mapping[str, Any] | None = None,
    metrics: MetricsSpec | None = None,
    action: Action = "append",
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    model: str | None = None,
    **options: Unpack[EvalOptions],
) -> EvalLog:
    """Score the samples of a log anew, one after the other, and write a log that has the scores.

    Samples that failed or were invalidated stay without a score. A scorer that raises leaves its sample unscored
    (``scoring_failed``); the others are scored all the same.

    Args:
        log: a finished log.
        scorer: scorers, or their names (``NAME``, ``package/NAME``, ``FILE@NAME``); those of the log when not given.
        scorer_args: arguments of the scorers that are named.
        metrics: in place of the scorers' own.
        action: ``append`` keeps the scores that are there; ``overwrite`` has the new ones take the place of all.
        output: where the scored log goes; ``<name>-scored`` beside the log when not given.
        overwrite: write into the log itself, or, with ``output``, over what is there.
        model: what ``get_model()`` gives scorers in place of the model that was evaluated.
        options: those of ``eval()`` that bear on scoring, see ``SCORE_OPTIONS``: ``model_roles``, ``max_connections``,
            ``async_backend``, ...

    Returns:
        The header of the scored log.

    Raises:
        UsageError: the log can't be scored so; nothing was sent.
        FileExistsError: somebody else has changed the log meanwhile.
    """
    job = _job(log, scorer, scorer_args, metrics, action, output, overwrite, model)
    resolved = _resolved(options)
    return in_loop(resolved, _score, job, resolved)


async def score_async(
    log: LogPath,
    scorer: Scorers = None,
    *,
    scorer_args: Mapping[str, Any] | None = None,
    metrics: MetricsSpec | None = None,
    action: Action = "append",
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    model: str | None = None,
    **options: Unpack[EvalOptions],
) -> EvalLog:
    """``score()`` for code that is already in an event loop."""
    job = _job(log, scorer, scorer_args, metrics, action, output, overwrite, model)
    return await _score(job, _resolved(of_this_loop(options)))


def _job(
    log: LogPath,
    scorer: Scorers,
    scorer_args: Mapping[str, Any] | None,
    metrics: MetricsSpec | None,
    action: Action,
    output: str | os.PathLike[str] | None,
    overwrite: bool,
    model: str | None,
) -> _Job:
    if action not in ("append", "overwrite"):
        raise UsageError(f"action={action!r}: use append or overwrite.")
    path = log.name if isinstance(log, EvalLogInfo) else os.fspath(log)
    target = None if output is None else os.fspath(output)
    if target is None and not overwrite:
        suffix = PurePath(path).suffix
        target = f"{path.removesuffix(suffix)}-scored{suffix}"
    return _Job(path, scorer, scorer_args or {}, metrics, action, target, overwrite, model)


def _resolved(options: Mapping[str, Any]) -> RunOptions:
    resolved = resolve_options(options)
    if idle := [name for name, value in options.items() if value is not None and name not in SCORE_OPTIONS]:
        raise UsageError(f"score() runs no samples, so {', '.join(idle)} would do nothing: leave it out.")
    return resolved


async def _score(job: _Job, options: RunOptions) -> EvalLog:
    plugins.configure(options.plugins, options.disable_plugins)
    plugins.startup()
    with ExitStack() as stack:
        stack.enter_context(run_gates(options.max_subprocesses, connection_policy(options)))
        stack.enter_context(run_models())
        try:
            if job.output is None:
                lease = await to_thread.run_sync(hold_eval_log, job.path)
                stack.callback(lease.close)
            elif not job.overwrite:
                await to_thread.run_sync(check_free, job.output)
            file, header = await to_thread.run_sync(_opened, job.path)
            model, roles = log_models(header, job.model, options)
            with use_models(model, roles):
                scoring = _Scoring(job, options, file, header)
                stack.callback(scoring.close)
                await scoring.run()
            return await to_thread.run_sync(scoring.write)
        finally:
            with anyio.CancelScope(shield=True):
                await close_models()


def _opened(path: str) -> tuple[LogFile, EvalLog]:
    try:
        file = open_log(path)
    except FileNotFoundError as error:
        raise UsageError(f"there is no log at {path}; `proctor log list` shows those there are.") from error
    header = finished_header(file)
    if not file.keys():
        raise UsageError(f"{path} holds no samples (log_samples=False), so there is nothing to score.")
    return file, header


class _Scoring:
    """The scoring of one log."""

    def __init__(self, job: _Job, options: RunOptions, file: LogFile, header: EvalLog) -> None:
        self._job, self._options, self._file, self._log = job, options, file, header
        made = _scorers(job, header)
        declared = eval_scorers(made, job.metrics)
        self._keep = job.action == "append"
        former = _former_names(header) if self._keep else []
        self._scorers = dict(zip(_free_names(scorer_names(made), former), made, strict=True))
        for one, name in zip(declared, self._scorers, strict=True):
            one.name = name
        self._declared = declared
        reducers = options.epochs_reducer
        reduced = log_reducers(header) if reducers is None else create_reducers(reducers)
        epochs = header.eval.config.epochs or 1
        check_reducers(reduced or (), epochs)
        self._samples, self._reductions = SampleSpool(), ReductionSpool()
        self._builder = ResultsBuilder(
            made, metrics=job.metrics, reducers=reduced, epochs=epochs, on_reduction=self._reduced
        )
        self._renamed = dict(zip(scorer_names(made), self._scorers, strict=True))
        self._outcomes = Outcomes([*former, *self._scorers])
        self._places = {str(id): place for place, id in enumerate(header.eval.dataset.sample_ids or ())}
        self._multiple = any(step.params.get("multiple_correct") for step in header.plan.steps)

    def close(self) -> None:
        self._samples.close()
        self._reductions.close()

    async def run(self) -> None:
        """Score all samples, some of them at once; each is read when its turn comes."""
        queue = iter(self._file.keys())
        workers = self._options.max_samples or self._options.config.max_connections or _AT_ONCE
        async with anyio.create_task_group() as tending:
            tending.start_soon(tend_gates)
            try:
                async with anyio.create_task_group() as group:
                    for _ in range(min(workers, len(self._file.keys()))):
                        group.start_soon(self._work, queue)
            except BaseExceptionGroup as errors:
                _raise_usage(errors)
                raise
            finally:
                tending.cancel_scope.cancel()

    async def _work(self, queue: Iterator[tuple[str, int]]) -> None:
        for id, epoch in queue:
            sample = await to_thread.run_sync(self._file.sample, id, epoch, "core")
            place = self._places.get(str(sample.id))
            if sample.error is not None or sample.invalidation is not None:
                self._builder.add(sample.id, sample.epoch, None, position=place)
            else:
                scores = await Isolated(self._scored(sample))
                own = {name: scores.get(shown) for name, shown in self._renamed.items()}
                self._builder.add(sample.id, sample.epoch, own, sample.metadata, position=place)
                await to_thread.run_sync(self._samples.add, sample)
            self._outcomes.add(sample)

    async def _scored(self, sample: EvalSample) -> dict[str, Score]:
        """The new scores, which are put into the sample, too, with what happened."""
        limits, store = SampleLimits(), Store(sample.store)
        transcript = Transcript(limits.working_time)
        doer = Activity(sample.id, sample.epoch)
        doer.events = transcript.events
        begin_activity(doer)
        begin_limits(limits)
        begin_store(store)
        begin_transcript(transcript)
        configure_model_logging(self._options.log_model_api, self._options.log_images)
        state = _state(self._log, sample, store, multiple=self._multiple)
        set_sample_state(state)
        scores: dict[str, Score] = {}
        with span("scorers", type="scorers"):
            for name, scorer in self._scorers.items():
                with span(name, type="scorer"):
                    given = await self._given(scorer, name, state)
                    if given is None:
                        continue
                    scores[name] = given
                    usage, roles = dict(limits.model_usage), dict(limits.role_usage) or None
                    transcript.event(
                        ScoreEvent(score=given, target=sample.target, scorer=name, model_usage=usage, role_usage=roles)
                    )
        self._take(sample, scores, transcript, limits)
        return scores

    async def _given(self, scorer: Scorer, name: str, state: TaskState) -> Score | None:
        try:
            score = await scorer(state, state.target)
            if score is not None and not isinstance(score, Score):
                raise TypeError(f"the scorer {name!r} returned {score!r:.100}, which is no Score")
        except UsageError as error:
            if self._samples:  # others were scored, and paid for
                return Score.unscored(_FAILED, explanation=str(error))
            raise
        except Exception as error:
            return Score.unscored(_FAILED, explanation=eval_error(error).message)
        return score

    def _take(self, sample: EvalSample, scores: dict[str, Score], transcript: Transcript, limits: SampleLimits) -> None:
        sample.scores = {**((sample.scores or {}) if self._keep else {}), **scores}
        sample.events = [*sample.events, *transcript.events]
        stats = self._log.stats
        for used, *totals in (
            (limits.model_usage, sample.model_usage, stats.model_usage),
            (limits.role_usage, sample.role_usage, stats.role_usage),
        ):
            for total in totals:
                for name, usage in used.items():
                    total[name] = (total.get(name) or ModelUsage()) + usage

    def _reduced(self, scorer: str, reducer: str | None, score: Any) -> None:
        self._reductions.add(self._renamed[scorer], reducer, score)

    def write(self) -> EvalLog:
        """Write the scored log; blocks."""
        log, former = self._log, self._log.results or EvalResults()
        fresh = self._builder.results(self._outcomes.recorded, self._outcomes.completed)
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
        self._outcomes.complete(fresh, former.total_samples or None)
        log.results = fresh
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
        spec.scorers = [*kept, *self._declared]


def _raise_usage(errors: BaseExceptionGroup[BaseException]) -> None:
    """Raise the bad input among ``errors`` by itself."""
    found = errors.subgroup(UsageError)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]  # type: ignore[assignment]  # a group holds errors or groups
    if found is not None:
        raise found


def _scorers(job: _Job, header: EvalLog) -> list[Scorer]:
    given = job.scorer
    if given is None:
        if job.scorer_args:
            raise UsageError(f"-S {next(iter(job.scorer_args))}=... is for a scorer: name it with --scorer")
        return log_scorers(header)
    found = []
    for one in [given] if isinstance(given, str) or not isinstance(given, Sequence) else given:
        if isinstance(one, str):
            try:
                found.append(find_scorer(one, job.scorer_args))
            except TypeError as error:
                raise UsageError(f"--scorer {one}: {error}") from error
        else:
            found.append(one)
    return found


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
