"""Logs of runs that died: what is whole in them becomes a finished log."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath

from proctor.contracts import UsageError
from proctor.log._clock import now_iso_seconds
from proctor.log._encode import encode_sample
from proctor.log._eval_file import EvalFile
from proctor.log._json import encode
from proctor.log._json_file import JsonFile, top_level
from proctor.log._layout import header_json, json_log, start_json
from proctor.log._location import check_free, missing_log, store_for
from proctor.log._log_file import LogFile
from proctor.log._open import open_log
from proctor.log._outcomes import Outcomes, planned_samples
from proctor.log._rewrite import copy_members
from proctor.log._summary import summarise
from proctor.log._writer import in_order
from proctor.log._zip_read import BadLogError
from proctor.log._zip_write import ZipBuilder
from proctor.schema import (
    EvalError,
    EvalLog,
    EvalResults,
    EvalSample,
    EvalSampleSummary,
    ModelUsage,
    add_usage,
)

__all__ = ["json_samples", "recover_eval_log"]

_MESSAGE = "Eval recovered from crash"
_TRACE = "The evaluation ended without finishing its log; the log was recovered from the samples that were written.\n"

Rescore = Callable[[EvalLog, Sequence[EvalSampleSummary]], EvalResults | None]


def recover_eval_log(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    rescore: Rescore | None = None,
) -> str:
    """Make a finished log (status ``error``) of one whose run died; the old one stays as it is.

    Args:
        path: the log.
        output: where the new one goes: ``<name>-recovered`` beside it when not given.
        overwrite: replace ``output`` if it is there.
        rescore: computes the results from the header and the summaries; without it, only the counts are filled in.

    Returns:
        The location of the new log.

    Raises:
        UsageError: its run is alive, there is nothing to recover, or ``output`` is there already.
    """
    location = os.fspath(path)
    target = os.fspath(output) if output is not None else _beside(location)
    store, name = store_for(location)
    to, to_name = store_for(target)
    try:
        if store.live(name):
            raise UsageError(f"{location} is being written by a run that is alive. Stop that run first.")
        chunks = _recovered(open_log(location), rescore)
    except FileNotFoundError as error:
        raise missing_log(location) from error
    if not overwrite:
        check_free(target, "name another with --output")
    to.replace(to_name, chunks)
    return target


def _beside(location: str) -> str:
    suffix = PurePath(location).suffix
    return f"{location.removesuffix(suffix)}-recovered{suffix}"


def _recovered(file: LogFile, rescore: Rescore | None) -> Iterator[bytes]:
    if isinstance(file, EvalFile):
        if "header.json" not in file.zip:
            return _eval(file, rescore)
        if not file.zip.torn:
            raise _nothing(file, file.header())
        return _new_directory(file)
    assert isinstance(file, JsonFile)
    log, samples = json_samples(file)
    if log.status != "started":
        raise _nothing(file, log)
    summaries = [summarise(sample) for sample in samples]
    return iter(json_log(_closed(log, summaries, rescore), map(encode_sample, samples), None))


def _nothing(file: LogFile, log: EvalLog) -> UsageError:
    return UsageError(f"{file.location} is whole (status {log.status}): there is nothing to recover.")


def _new_directory(file: EvalFile) -> Iterator[bytes]:
    """The log as it is: it was cut behind its last member, so nothing but the directory is missing."""
    zip = ZipBuilder()
    yield from copy_members(zip, file.zip, lambda name: True)
    yield bytes(zip.directory)
    yield zip.end()


def _eval(file: EvalFile, rescore: Rescore | None) -> Iterator[bytes]:
    log = file.header()  # raises before anything is written when the log is beyond help
    summaries = _summaries(file)
    return _eval_chunks(file, _closed(log, summaries, rescore), summaries)


def _eval_chunks(file: EvalFile, log: EvalLog, summaries: Sequence[EvalSampleSummary]) -> Iterator[bytes]:
    zip = ZipBuilder()
    yield from zip.add([("_journal/start.json", start_json(log))])
    yield from copy_members(zip, file.zip, lambda name: name.startswith(("samples/", "_journal/config_updates/")))
    rows = encode(summaries)
    yield from zip.add(
        [("_journal/summaries/1.json", rows), ("summaries.json", rows), ("header.json", header_json(log))]
    )
    yield bytes(zip.directory)
    yield zip.end()


def _summaries(file: EvalFile) -> list[EvalSampleSummary]:
    """One for each sample: from the journal, or from the sample itself where the journal was cut before it."""
    rows: dict[tuple[str, int], EvalSampleSummary] = {}
    for row in file.summaries():
        rows[str(row.id), row.epoch] = row
    keys = file.keys()
    for id, epoch in keys:
        if (id, epoch) not in rows:
            rows[id, epoch] = summarise(file.sample(id, epoch))
    return [rows[key] for key in keys]


def json_samples(file: JsonFile) -> tuple[EvalLog, list[EvalSample]]:
    """The header of a ``.json`` log and its samples, as far as they are whole; a log that was cut has ``started``."""
    try:
        log = file.whole()
        return log, log.samples or []
    except BadLogError:
        log = file.header()
        log.status = "started"
        return log, list(_whole_samples(file))


def _whole_samples(file: JsonFile) -> Iterator[EvalSample]:
    """The samples of a ``.json`` log whose end is missing, up to the first that is not whole."""
    text = file.text()
    head = top_level(text)
    place = text.find("[", head[1]) + 1 if head is not None else 0
    if place == 0:
        return
    decoder = json.JSONDecoder()
    while place < len(text):
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1
        try:
            value, place = decoder.raw_decode(text, place)
            yield EvalSample.model_validate(value)
        except (ValueError, RecursionError):
            return


def _closed(log: EvalLog, summaries: Sequence[EvalSampleSummary], rescore: Rescore | None) -> EvalLog:
    log.status = "error"
    planned = planned_samples(log.eval)
    if log.eval.dataset.sample_ids is None:  # readers that go by the header would find no sample
        log.eval.dataset.sample_ids = in_order(dict.fromkeys(row.id for row in summaries))
    log.error = EvalError(message=_MESSAGE, traceback=_TRACE, traceback_ansi=_TRACE)
    log.results = rescore(log, summaries) if rescore is not None else None
    if log.results is None:
        log.results = EvalResults()
    _count(log.results, summaries, planned)
    stats = log.stats
    stats.started_at = stats.started_at or log.eval.created
    stats.completed_at = stats.completed_at or max((row.completed_at or "" for row in summaries), default="")
    stats.completed_at = stats.completed_at or now_iso_seconds()
    if not stats.model_usage:
        stats.model_usage = _total(row.model_usage for row in summaries)
        stats.role_usage = _total(row.role_usage for row in summaries)
    return log


def _count(results: EvalResults, summaries: Sequence[EvalSampleSummary], planned: int) -> None:
    outcomes = Outcomes(list(dict.fromkeys(score.scorer for score in results.scores)))
    for row in summaries:
        outcomes.add(row)
    outcomes.complete(results, planned)


def _total(usages: Iterable[dict[str, ModelUsage]]) -> dict[str, ModelUsage]:
    total: dict[str, ModelUsage] = {}
    for usage in usages:
        add_usage(total, usage)
    return total
