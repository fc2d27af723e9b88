"""Score the samples of a finished log anew, without running them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import PurePath
from typing import Any, TypeAlias, Unpack

import anyio
from anyio import to_thread

from proctor import plugins
from proctor.concurrency import run_gates
from proctor.contracts import UsageError
from proctor.engine._eval import outside_a_loop
from proctor.engine._load import find_scorer
from proctor.engine._loop import in_loop
from proctor.engine._options import RunOptions, connection_policy, resolve_options
from proctor.engine._run import of_this_loop
from proctor.engine._scored_with import log_metrics, log_models, log_scorers
from proctor.engine._scoring import Action, ScoreJob, Scorers, Scoring
from proctor.engine._signals import stop_signals
from proctor.log import EvalLogInfo, LogFile, check_free, finished_header, hold_eval_log, missing_log, open_log
from proctor.model import close_models, run_models, use_models
from proctor.schema import EvalLog, EvalOptions, score_keys
from proctor.scorer import MetricsSpec, Scorer

__all__ = ["Action", "score", "score_async"]

_KEPT = "Stopped at once. What was graded is kept: the same command goes on from there."

LogPath: TypeAlias = "str | os.PathLike[str] | EvalLogInfo | EvalLog"


def score(
    log: LogPath,
    scorer: Scorers = None,
    *,
    scorer_args: Mapping[str, Any] | None = None,
    metrics: MetricsSpec | None = None,
    action: Action | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    model: str | None = None,
    fresh: bool = False,
    tell: Callable[[int, int], object] | None = None,
    on_resume: Callable[[int], object] | None = None,
    **options: Unpack[EvalOptions],
) -> EvalLog:
    """Score the samples of a log anew, one after the other, and write a log that has the scores.

    Samples whose solver failed, and those that were invalidated, stay without a score; those whose scorer failed in the
    run get one. The first scorer that raises ends the scoring, unless ``fail_on_error`` says otherwise; then it leaves
    its sample unscored (``scoring_failed``). Whatever ends it, what was graded is kept: the same call goes on from
    there.

    Args:
        log: a finished log.
        scorer: scorers, or their names (``NAME``, ``package/NAME``, ``FILE@NAME``); those of the log, with its metrics,
            when not given.
        scorer_args: arguments of the scorers that are named.
        metrics: in place of the scorers' own.
        action: ``append`` keeps the scores that are there; ``overwrite`` has the new ones take the place of all. When
            not given, scorers that are are appended, and those of the log overwrite: to have the same twice says
            nothing. In the log itself, where the old ones would be lost, that must be said.
        output: where the scored log goes; ``<name>-scored`` beside the log when not given.
        overwrite: write into the log itself, or, with ``output``, over what is there.
        model: what ``get_model()`` gives scorers in place of the model that was evaluated.
        fresh: throw away what the same scoring has graded before it was stopped.
        tell: called on any thread with how many samples are done, and of how many, after each: what was graded is kept.
        on_resume: called with how many samples the same scoring has graded before it was stopped.
        options: those of ``eval()`` that bear on scoring (``score_keys``): ``model_roles``, ``fail_on_error``, ...

    Returns:
        The header of the scored log.

    Raises:
        UsageError: the log can't be scored so; nothing was sent.
        ScoringStopped: it ended before all samples were done: by Ctrl-C, or since scorers failed.
        FileExistsError: somebody else has changed the log meanwhile.
    """
    outside_a_loop("score()", "write `await score_async(...)`")
    job = _job(log, scorer, scorer_args, metrics, action, output, overwrite, model, fresh, tell, on_resume)
    resolved = _resolved(options)
    return in_loop(resolved, _score, job, resolved)


async def score_async(
    log: LogPath,
    scorer: Scorers = None,
    *,
    scorer_args: Mapping[str, Any] | None = None,
    metrics: MetricsSpec | None = None,
    action: Action | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    model: str | None = None,
    fresh: bool = False,
    **options: Unpack[EvalOptions],
) -> EvalLog:
    """``score()`` for code that is already in an event loop."""
    job = _job(log, scorer, scorer_args, metrics, action, output, overwrite, model, fresh)
    return await _score(job, _resolved(of_this_loop(options)))


def _job(
    log: LogPath,
    scorer: Scorers,
    scorer_args: Mapping[str, Any] | None,
    metrics: MetricsSpec | None,
    action: Action | None,
    output: str | os.PathLike[str] | None,
    overwrite: bool,
    model: str | None,
    fresh: bool,
    tell: Callable[[int, int], object] | None = None,
    on_resume: Callable[[int], object] | None = None,
) -> ScoreJob:
    if action not in ("append", "overwrite", None):
        raise UsageError(f"action={action!r}: use append or overwrite.")
    path = _path(log)
    target = None if output is None else os.fspath(output)
    if action is None and scorer is None and overwrite and target in (None, path):
        raise UsageError(
            "the log's own scorers are asked again, and their new scores would take the place of the old ones in the "
            "log itself: say so with --action overwrite (action='overwrite'), keep both with --action append, or leave "
            "--overwrite out to have a scored log beside it."
        )
    action = action or ("overwrite" if scorer is None else "append")
    if target is None and not overwrite:
        suffix = PurePath(path).suffix
        target = f"{path.removesuffix(suffix)}-scored{suffix}"
    return ScoreJob(path, scorer, scorer_args or {}, metrics, action, target, overwrite, model, fresh, tell, on_resume)


def _path(log: LogPath) -> str:
    if isinstance(log, EvalLog):
        if not log.location:
            raise UsageError("the log was made in memory, and is in no file: write it with write_eval_log first.")
        return log.location
    return log.name if isinstance(log, EvalLogInfo) else os.fspath(log)


def _resolved(options: Mapping[str, Any]) -> RunOptions:
    resolved = resolve_options(options)
    if idle := [name for name, value in options.items() if value is not None and name not in score_keys()]:
        raise UsageError(f"score() runs no samples, so {', '.join(idle)} would do nothing: leave it out.")
    return resolved


async def _score(job: ScoreJob, options: RunOptions) -> EvalLog:
    plugins.configure(options.plugins, options.disable_plugins)
    plugins.startup()
    with ExitStack() as stack:
        stack.enter_context(run_gates(options.max_subprocesses, connection_policy(options)))
        stack.enter_context(run_models())
        try:
            if job.output is None:
                lease = await to_thread.run_sync(hold_eval_log, job.path)
                stack.callback(lease.close)
            file, header = await to_thread.run_sync(_opened, job.path)
            model, roles = log_models(header, job.model, options)
            with use_models(model, roles):
                scorers = _scorers(job, header)
                if job.scorer is None and job.metrics is None:
                    job = replace(job, metrics=log_metrics(header))
                if job.output is not None and not job.overwrite:  # what was asked for is looked at first
                    await to_thread.run_sync(check_free, job.output)
                scoring = Scoring(job, options, file, header, scorers, model, roles)
                stack.callback(scoring.close)
                await _until_signalled(scoring)
            return await to_thread.run_sync(scoring.write)
        finally:
            with anyio.CancelScope(shield=True):
                await close_models()


async def _until_signalled(scoring: Scoring) -> None:
    """Score, or stop at Ctrl-C or SIGTERM; a second one ends the process.

    Raises:
        ScoringStopped: it was stopped.
    """
    signals: list[int] = []
    stop = anyio.CancelScope()
    done = False
    try:
        with stop_signals(signals.append, stop.cancel, lambda: _KEPT), stop:
            await scoring.run()
            done = True
    except BaseExceptionGroup:
        if not signals:
            raise  # otherwise it is what a cancelled scorer raised on its way out
    if not done:
        raise scoring.stopped(f"stopped by {signal.Signals(signals[0]).name}", 128 + signals[0])


def _opened(path: str) -> tuple[LogFile, EvalLog]:
    try:
        file = open_log(path)
    except FileNotFoundError as error:
        raise missing_log(path) from error
    header = finished_header(file)
    if not file.keys():
        raise UsageError(f"{path} holds no samples (log_samples=False), so there is nothing to score.")
    return file, header


def _scorers(job: ScoreJob, header: EvalLog) -> list[Scorer]:
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
