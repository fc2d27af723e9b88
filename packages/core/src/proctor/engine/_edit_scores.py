"""Changes of a finished log that move its scores: invalidated samples, edited scores, metrics computed anew."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from proctor.contracts import UsageError
from proctor.engine._failed_metrics import ending_without_metrics, settle_metrics
from proctor.engine._load import learn_components
from proctor.log import (
    EvalLogInfo,
    LogEdit,
    LogFile,
    Outcomes,
    ReductionSpool,
    SampleSpool,
    change_eval_log,
    kept_reductions,
    new_provenance,
    now_iso,
    planned_samples,
    scored_samples,
)
from proctor.schema import (
    EvalLog,
    EvalResults,
    EvalSample,
    EvalSpec,
    Provenance,
    Score,
    ScoreEdit,
    ScoreEditEvent,
    own_metadata,
    quick_id,
)
from proctor.scorer import ResultsBuilder, ScoreReducer, create_reducers, declared_scorers, scorer_names

__all__ = ["edit_score", "invalidate_samples", "recompute_metrics", "recomputed", "uninvalidate_samples"]

_FIELDS = ("value", "answer", "explanation", "reason", "metadata")
_UNCHANGED = "UNCHANGED"

LogPath = str | Path | EvalLogInfo
Samples = Collection[tuple[int | str, int | None]] | None
"""Which samples: id and epoch (``None``: all epochs) of each; ``None``: all of the log."""


def invalidate_samples(path: LogPath, samples: Samples = None, provenance: Provenance | None = None) -> EvalLog:
    """Say that results of a log must not count. Metrics are computed without them, and ``eval-retry`` runs them again.

    Args:
        path: a finished log.
        samples: which; all when not given.
        provenance: who, when and why; see ``new_provenance``.

    Returns:
        The new header.

    Raises:
        UsageError: the log has no such sample, or can't be changed.
    """
    given = provenance or new_provenance()

    def mark(sample: EvalSample) -> bool:
        if sample.invalidation is not None:
            return False  # who said so first is kept
        sample.invalidation = given
        return True

    return change_eval_log(path, lambda file: _with_samples(file, samples, mark))


def uninvalidate_samples(path: LogPath, samples: Samples = None) -> EvalLog:
    """Take back what ``invalidate_samples`` said; the arguments are the same."""

    def unmark(sample: EvalSample) -> bool:
        was = sample.invalidation is not None
        sample.invalidation = None
        return was

    return change_eval_log(path, lambda file: _with_samples(file, samples, unmark))


def edit_score(
    path: LogPath,
    id: int | str,
    score: str,
    edit: ScoreEdit,
    *,
    epoch: int = 1,
    provenance: Provenance | None = None,
) -> EvalLog:
    """Change a score of a sample, or give it one. What it was stays in its history; metrics are computed anew.

    Args:
        path: a finished log.
        id: the sample's id.
        score: the score's name, which is its scorer's.
        edit: the new fields; those that are ``"UNCHANGED"`` stay as they are.
        epoch: of the sample.
        provenance: who, when and why, unless ``edit`` says so.

    Returns:
        The new header.

    Raises:
        UsageError: the log has no such sample; a new score is given no value; or the value is one number where the
            score has a value of each key, or the other way round, so that the metrics would not fit it.
    """
    if edit.provenance is None:
        edit = edit.model_copy(update={"provenance": provenance or new_provenance()})

    def change(sample: EvalSample) -> bool:
        scores = dict(sample.scores or {})
        known = scores.get(score)
        if known is None and edit.value == _UNCHANGED:
            have = ", ".join(scores) or "none"
            raise UsageError(f"sample {id!r} has no score {score!r} (it has: {have}): give a new one a value.")
        _check_shape(id, score, known, edit.value)
        scores[score] = edited_score(known, edit)
        sample.scores = scores
        sample.events.append(
            ScoreEditEvent(score_name=score, edit=edit, uuid=quick_id(), timestamp=now_iso(), working_start=0)
        )
        return True

    return change_eval_log(path, lambda file: _with_samples(file, [(id, epoch)], change))


def _check_shape(id: int | str, name: str, known: Score | None, value: Any) -> None:
    """Refuse one number where there is one of each key, and the other way round; what is missing has no shape."""
    if known is None or value == _UNCHANGED or value != value or known.value != known.value:
        return
    keyed = isinstance(known.value, dict)
    if keyed != isinstance(value, dict):
        asked = f"{known.value!r}, a value of each key: give a dict" if keyed else f"{known.value!r}: give one value"
        raise UsageError(f"the score {name!r} of sample {id!r} is {asked}, or the metrics would not fit it.")


def edited_score(score: Score | None, edit: ScoreEdit) -> Score:
    """``score`` with ``edit``; the first entry of a history is what stood there before any edit."""
    given = {name: value for name in _FIELDS if (value := getattr(edit, name)) != _UNCHANGED}
    if score is None:
        return Score(**given, history=[edit])
    history = list(score.history) or [ScoreEdit(**{name: getattr(score, name) for name in _FIELDS})]
    return score.model_copy(update={**given, "history": [*history, edit]})


def recompute_metrics(path: LogPath) -> EvalLog:
    """Compute the metrics of a finished log anew from the scores of its samples, and return the new header."""

    def change(file: LogFile) -> LogEdit:
        log = file.header(reductions=False)
        _with_some(file)
        return LogEdit(log, None, recomputed(file, log))

    return change_eval_log(path, change)


def _with_samples(file: LogFile, samples: Samples, change: Callable[[EvalSample], bool]) -> LogEdit:
    """The edit that ``change`` makes of the samples; it says whether it changed one."""
    log = file.header(reductions=False)
    keys = _with_some(file)
    spool = SampleSpool()
    try:
        for id, epoch in keys if samples is None else _asked(file, keys, samples):
            sample = file.sample(id, epoch)
            if change(sample):
                spool.add(sample)
        edit = LogEdit(log, spool, None)
        edit.reductions = recomputed(file, log, spool)
        return edit
    except BaseException:
        spool.close()
        raise


def _with_some(file: LogFile) -> Sequence[tuple[str, int]]:
    """The samples of a log; without any, what its results are made of is not known, and they stay as they are."""
    keys = file.keys()
    if not keys:
        raise UsageError(f"{file.location} holds no samples, so there is nothing to change or to compute results from.")
    return keys


def _asked(
    file: LogFile, keys: Iterable[tuple[str, int]], samples: Collection[tuple[int | str, int | None]]
) -> list[tuple[str, int]]:
    epochs: dict[str, list[int]] = {}
    for id, epoch in keys:
        epochs.setdefault(id, []).append(epoch)
    found: dict[tuple[str, int], None] = {}
    for wanted, one in samples:
        there = epochs.get(str(wanted), [])
        if not there or (one is not None and one not in there):
            which = f"sample {wanted!r}" + ("" if one is None else f" of epoch {one}")
            raise UsageError(f"{file.location} has no {which}; `proctor log dump {file.location}` shows those it has.")
        found |= dict.fromkeys((str(wanted), each) for each in (there if one is None else [one]))
    return list(found)


def recomputed(file: LogFile, log: EvalLog, edited: SampleSpool | None = None) -> ReductionSpool | None:
    """Compute results anew and put them into ``log``, with ``invalidated`` as its samples are now.

    Metrics are made as the log declares them, with the code of its task's file when they are not known. If they can't
    be, the old values stay, and ``results.metadata["proctor"]["stale"]`` names what is missing.

    Args:
        file: the log as it is.
        log: its header, which is changed.
        edited: samples that are no longer as in ``file``.

    Returns:
        The reduced scores; ``None`` if those that the log has should stay.
    """
    missing: list[str] = []
    scorers = _declared(log.eval, missing)
    names = scorer_names(scorers) or list(dict.fromkeys(one.scorer for one in (log.results or EvalResults()).scores))
    spool = ReductionSpool()
    builder = ResultsBuilder(
        scorers,
        reducers=log_reducers(log),
        epochs=log.eval.config.epochs or 1,
        on_reduction=spool.add,
    )
    outcomes = Outcomes(names, builder.no_number)
    places = {str(id): place for place, id in enumerate(log.eval.dataset.sample_ids or ())}
    log.invalidated = False
    for sample in scored_samples(file, edited):
        outcomes.add(sample)
        log.invalidated = log.invalidated or sample.invalidation is not None
        scores = None if sample.error is not None or sample.invalidation is not None else sample.scores
        builder.add(sample.id, sample.epoch, scores, sample.metadata, position=places.get(str(sample.id)))
    planned = log.results.total_samples if log.results is not None else planned_samples(log.eval)
    former = log.results or EvalResults()
    log.results = former.model_copy()
    own: dict[str, Any] = dict(own_metadata(former))
    own.pop("stale", None)
    ending = ending_without_metrics(log)
    if missing or not scorers:
        if former.scores:
            own["stale"] = missing or ["the log declares no scorers"]
        spool.close()
        kept = None
    else:
        fresh = builder.results(max(planned, outcomes.recorded), outcomes.completed)
        others = [row for row in former.scores if row.scorer not in names]
        if others:  # scores that somebody added without a scorer
            own["stale"] = list(dict.fromkeys(row.scorer for row in others))
            with closing(kept_reductions(file, own["stale"])) as kept_ones:
                spool.extend(kept_ones)
        log.results.scores = [*fresh.scores, *others]
        log.results.headline = former.headline or fresh.headline
        kept = spool
    log.results.metadata = {**(former.metadata or {}), "proctor": own}
    outcomes.complete(log.results, planned)
    if kept is not None:
        settle_metrics(log, builder.failures, ending)
    return kept


def log_reducers(log: EvalLog) -> list[ScoreReducer] | None:
    """How the log's epochs are reduced; ``None`` where its results do not name it."""
    names = log.eval.config.epochs_reducer
    rows = log.results.scores if log.results is not None else []
    if names is None or (names and rows and all(row.reducer is None for row in rows)):
        return None
    return create_reducers(names)


def _declared(spec: EvalSpec, missing: list[str]) -> list[Any]:
    scorers = declared_scorers(spec, missing)
    if missing and learn_components(spec.task_file):
        missing.clear()
        scorers = declared_scorers(spec, missing)
    return scorers
