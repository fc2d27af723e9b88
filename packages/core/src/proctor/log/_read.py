"""Reading logs: whole, header only, or sample by sample."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from proctor.contracts import UsageError
from proctor.log._expand import Resolve
from proctor.log._json_file import JsonFile
from proctor.log._layout import sample_order
from proctor.log._list import EvalLogInfo
from proctor.log._log_file import LogFile, SampleNotFoundError
from proctor.log._open import open_log
from proctor.schema import EvalLog, EvalSample, EvalSampleSummary

__all__ = [
    "read_eval_log",
    "read_eval_log_sample",
    "read_eval_log_sample_summaries",
    "read_eval_log_samples",
]

LogPath = str | os.PathLike[str] | EvalLogInfo
Format = Literal["auto", "eval", "json"]


def _opened(path: LogPath, format: Format = "auto", *, whole: bool = False) -> LogFile:
    location = path.name if isinstance(path, EvalLogInfo) else os.fspath(path)
    try:
        return open_log(location, format, whole=whole)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            error.errno, "there is no log here; `proctor log list` shows those there are", location
        ) from error


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without the cyclic garbage collector: it would look at the growing log again and again, for most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read_eval_log(
    path: LogPath,
    header_only: bool = False,
    resolve_attachments: Resolve = False,
    format: Format = "auto",
    *,
    reductions: bool = True,
) -> EvalLog:
    """The log at ``path``; a torn log (a write was cut) is read as far as it is whole.

    Args:
        path: where the log is.
        header_only: leave the samples out.
        resolve_attachments: put long texts back in their places: ``"full"`` or ``True`` everywhere, ``"core"`` in all
            but the raw calls, ``False`` nowhere.
        format: of the file; ``auto`` looks at its content.
        reductions: with the samples' reduced scores; a header is read many times faster without them.

    Raises:
        FileNotFoundError: there is nothing.
        UsageError: what is there is not a log.
    """
    file = _opened(path, format, whole=not header_only)
    if header_only:
        return file.header(reductions)
    with _no_collection():
        if isinstance(file, JsonFile):
            log = file.whole(resolve_attachments)
            log.samples = sorted(log.samples or [], key=sample_order)
            return log
        log = file.header(reductions)
        log.samples = sorted(file.samples(resolve_attachments), key=sample_order)
        return log


def read_eval_log_sample(
    path: LogPath,
    id: int | str | None = None,
    epoch: int = 1,
    uuid: str | None = None,
    resolve_attachments: Resolve = False,
    format: Format = "auto",
) -> EvalSample:
    """One sample, by id and epoch or by uuid. Of an ``.eval`` log only the directory and that sample are read.

    Raises:
        SampleNotFoundError: the log has no such sample (it is an ``IndexError``, too).
        UsageError: neither ``id`` nor ``uuid`` was given, or there is no log.
    """
    if id is None and uuid is None:
        raise UsageError("say which sample to read: its id (and epoch) or its uuid.")
    file = _opened(path, format)
    if id is None:
        for row in reversed(file.summaries()):
            if row.uuid == uuid:
                return file.sample(row.id, row.epoch, resolve_attachments)
        raise SampleNotFoundError(f"{file.location} has no sample with uuid {uuid!r}.")
    return file.sample(id, epoch, resolve_attachments)


def read_eval_log_samples(
    path: LogPath,
    all_samples_required: bool = True,
    resolve_attachments: Resolve = False,
    format: Format = "auto",
) -> Iterator[EvalSample]:
    """The samples one by one, in the order of the dataset, all epochs of the first before the second of any.

    Args:
        path: where the log is.
        all_samples_required: refuse a log that did not succeed or was invalidated, and one that lacks a sample.
        resolve_attachments: as for ``read_eval_log``.
        format: of the file.

    Raises:
        UsageError: samples are missing, or may be, and all are required.
    """
    file = _opened(path, format)
    header = file.header(reductions=False)
    if all_samples_required and (header.status != "success" or header.invalidated):
        state = "was invalidated" if header.invalidated else f"has status {header.status!r}"
        raise UsageError(
            f"{file.location} {state}, so samples may be missing: pass all_samples_required=False to read it."
        )
    return _samples(file, header, all_samples_required, resolve_attachments)


def _samples(file: LogFile, header: EvalLog, required: bool, resolve: Resolve) -> Iterator[EvalSample]:
    ids = header.eval.dataset.sample_ids
    if ids is None:  # a dataset too large to list, or made as it was read
        yield from file.samples(resolve)
        return
    for id in ids:
        for epoch in range(1, (header.eval.config.epochs or 1) + 1):
            try:
                yield file.sample(id, epoch, resolve)
            except SampleNotFoundError:
                if required:
                    raise


def read_eval_log_sample_summaries(
    path: LogPath, format: Format = "auto", *, offset: int = 0, limit: int | None = None
) -> list[EvalSampleSummary]:
    """The summaries of the samples, in the order in which they were completed.

    Args:
        path: where the log is.
        format: of the file.
        offset: how many to leave out at the beginning.
        limit: how many to read at most; of a large ``.eval`` log little more than those is looked at. Attempts that
            were replaced later are in such a page, too.
    """
    file = _opened(path, format)
    return file.summaries()[offset:] if limit is None else file.page(offset, limit)
