"""Writing a whole log at once: from memory, or from another log sample by sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import PurePath
from typing import Literal

from proctor.contracts import LogBusyError, UsageError
from proctor.log._encode import encode_sample
from proctor.log._eval_file import SAMPLE, EvalFile
from proctor.log._json import encode
from proctor.log._json_file import JsonFile
from proctor.log._layout import header_json, json_log, sample_member, sample_order, start_json
from proctor.log._list import list_eval_logs
from proctor.log._location import check_free, join, missing_log, store_for
from proctor.log._log_file import LogFile
from proctor.log._open import open_log
from proctor.log._spool import ReductionSpool, SampleSpool
from proctor.log._summary import summary_fields
from proctor.log._zip_format import ZSTD
from proctor.log._zip_read import ZipReader
from proctor.log._zip_write import ZipBuilder, member_name
from proctor.schema import EvalLog, EvalSample

__all__ = ["convert_eval_logs", "copy_members", "edited_log", "write_eval_log"]

_GROUP = 64  # samples that are encoded before they are compressed together

Format = Literal["auto", "eval", "json"]


def write_eval_log(
    log: EvalLog,
    location: str | os.PathLike[str] | None = None,
    format: Format = "auto",
    *,
    header_only: bool = False,
    if_match: str | None = None,
) -> str:
    """Write ``log``; readers see the old content or the new, never a mixture.

    Without samples (``None``, or ``header_only``) the samples of a log that stands there already are kept.

    Args:
        log: what to write.
        location: where; the place that the log was read from when not given.
        format: of the file; ``auto`` goes by the name.
        header_only: leave the samples as they are in the file.
        if_match: the etag that the log must still have, lest two editors undo each other. When not given, a log that is
            written where it was read from must be as it was then (``log.etag``); ``"*"`` writes it whatever is there.

    Returns:
        The location.

    Raises:
        UsageError: no location is known.
        LogBusyError: a run writes the log, or somebody else edits it.
        FileExistsError: somebody else has changed the log: read it again, and make the change again.
    """
    place = os.fspath(location) if location is not None else log.location
    if not place:
        raise UsageError("say where to write the log: it was not read from a file.")
    kept = _existing(place) if header_only or log.samples is None else None
    if kept is None:
        chunks = _chunks(log, log.samples, _format(place, format), _existing(log.location) if log.location else None)
    elif isinstance(kept, EvalFile):
        chunks = _edited_eval(kept, log, None, _reductions(log))
    else:
        chunks = json_log(log, (encode_sample(sample) for sample in kept.samples()), _reductions(log))
    store, name = store_for(place)
    if if_match is None and place == log.location:
        if_match = log.etag
    with suppress(FileNotFoundError):  # a new log
        if store.live(name):
            raise LogBusyError(name)
    stat = store.replace(name, chunks, None if if_match == "*" else if_match)
    if place == log.location:
        log.etag = stat.etag
    return place


def _existing(location: str) -> LogFile | None:
    try:
        return open_log(location)
    except (OSError, ValueError):
        return None


def _format(location: str, format: Format) -> Literal["eval", "json"]:
    if format != "auto":
        return format
    suffix = PurePath(location).suffix
    if suffix not in (".eval", ".json"):
        raise UsageError(f"the name of a log ends in .eval or .json: {location}")
    return "eval" if suffix == ".eval" else "json"


def _chunks(
    log: EvalLog, samples: Iterable[EvalSample] | None, format: Literal["eval", "json"], source: LogFile | None
) -> Iterable[bytes]:
    if format == "json":
        if isinstance(samples, list):  # iterators come from logs, in order
            samples = sorted(samples, key=sample_order)
        raw = None if samples is None else (encode_sample(sample) for sample in samples)
        return json_log(log, raw, _reductions(log))
    return _eval_log(log, samples or (), source)


def _reductions(log: EvalLog) -> list[bytes] | None:
    return None if log.reductions is None else [encode(log.reductions)]


def _eval_log(log: EvalLog, samples: Iterable[EvalSample], source: LogFile | None) -> Iterator[bytes]:
    zip = ZipBuilder()
    yield from zip.add([("_journal/start.json", start_json(log))])
    rows: list[bytes] = []
    if isinstance(source, EvalFile):
        yield from _chunked(zip, source, rows)
    todo = iter(samples)
    while group := list(islice(todo, _GROUP)):
        yield from zip.add([(sample_member(sample.id, sample.epoch), encode_sample(sample)) for sample in group])
        rows += [encode(summary_fields(sample)) for sample in group]
    if rows:
        yield from zip.add_streamed("_journal/summaries/1.json", _array(rows))
    yield from _tail(zip, log, _array(rows))


def _array(rows: Iterable[bytes]) -> Iterator[bytes]:
    yield b"["
    for index, row in enumerate(rows):
        yield b"," + row if index else row
    yield b"]"


def _tail(zip: ZipBuilder, log: EvalLog, summaries: Iterable[bytes]) -> Iterator[bytes]:
    yield from zip.add_streamed("summaries.json", summaries)
    if log.reductions is not None:
        yield from zip.add([("reductions.json", encode(log.reductions))])
    yield from zip.add([("header.json", header_json(log))])
    yield bytes(zip.directory)
    yield zip.end()


def _chunked(zip: ZipBuilder, source: EvalFile, rows: list[bytes]) -> Iterator[bytes]:
    """Samples that are stored in chunks, member by member as they are: they are not read, so they must not be lost."""
    names = [name for name in source.zip.entries if name.startswith("samples/") and not SAMPLE.fullmatch(name)]
    folders = {name.split("/")[1] for name in names if name.endswith("/sample.json")}
    if folders:
        yield from copy_members(zip, source.zip, lambda name: name in names)
        rows += [encode(row) for row in source.summaries() if f"{row.id}_epoch_{row.epoch}" in folders]


def copy_members(zip: ZipBuilder, source: ZipReader, wanted: Callable[[str], bool]) -> Iterator[bytes]:
    """The wanted members of ``source`` as they are; those that are not packed with Zstandard are packed anew."""
    for name, entry in source.entries.items():
        if not wanted(name):
            continue
        if entry.method == ZSTD:
            yield from zip.add_compressed([(member_name(name), entry.crc, entry.size, source.raw(entry))])
        else:
            yield from zip.add([(name, source.content(entry))])


def edited_log(
    file: LogFile, log: EvalLog, samples: SampleSpool | None = None, reductions: ReductionSpool | None = None
) -> Iterable[bytes]:
    """The log in ``file`` with another header; its samples stay as they are, but for those in ``samples``.

    Args:
        file: the log.
        log: the header.
        samples: what takes the place of samples of the same id and epoch.
        reductions: in the place of those that the log has; ``None`` keeps them.
    """
    if isinstance(file, EvalFile):
        return _edited_eval(file, log, samples, None if reductions is None else reductions.chunks())
    assert isinstance(file, JsonFile)
    whole = file.whole()
    raws = (
        (samples and samples.content(sample.id, sample.epoch)) or encode_sample(sample)
        for sample in sorted(whole.samples or (), key=sample_order)
    )
    return json_log(log, raws, _reductions(whole) if reductions is None else reductions.chunks())


def _edited_eval(
    file: EvalFile, log: EvalLog, samples: SampleSpool | None, reductions: Iterable[bytes] | None
) -> Iterator[bytes]:
    zip = ZipBuilder()
    gone = {"header.json"} | ({"reductions.json"} if reductions is not None else set())
    if samples is not None:
        gone |= {"summaries.json", *file.journal("summaries")}
    yield from copy_members(zip, file.zip, lambda name: name not in gone and not (samples and name in samples))
    if samples is not None:
        for member in samples.members():
            yield from zip.add_compressed([member])
        for name in ("_journal/summaries/1.json", "summaries.json"):
            yield from zip.add_streamed(name, _array(_edited_rows(file, samples)))
    if reductions is not None:
        yield from zip.add_streamed("reductions.json", reductions)
    yield from zip.add([("header.json", header_json(log))])
    yield bytes(zip.directory)
    yield zip.end()


def _edited_rows(file: EvalFile, samples: SampleSpool) -> Iterator[bytes]:
    """The summaries of all samples in their order; of one that stands there twice, the last counts."""
    for row in file.rows():
        yield samples.summary(row["id"], row["epoch"]) or encode(row)


def convert_eval_logs(
    path: str | os.PathLike[str],
    to: Literal["eval", "json"],
    output_dir: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    resolve_attachments: bool | Literal["core", "full"] = False,
) -> list[str]:
    """Write the log at ``path``, or all logs in that folder, in the other format (or the same, anew).

    Samples are taken one at a time, except where the source is ``.json``.

    Args:
        path: a log or a folder.
        to: the format.
        output_dir: where the new logs go, in folders as below ``path``.
        overwrite: replace logs that stand there already.
        resolve_attachments: as for ``read_eval_log``.

    Returns:
        The locations of the new logs.

    Raises:
        UsageError: a log stands there already, there is none at ``path``, or it is none.
    """
    source, target = os.fspath(path), os.fspath(output_dir)
    pairs = [(source, "")]
    if not source.endswith((".eval", ".json")):
        pairs = [(info.name, _below(info.name, source)) for info in list_eval_logs(source)]
        if not pairs:
            raise missing_log(source)
    return [
        _convert(log, join(target, folder) if folder else target, to, overwrite, resolve_attachments)
        for log, folder in pairs
    ]


def _below(location: str, folder: str) -> str:
    return (
        location[len(folder.rstrip("/")) + 1 :].rpartition("/")[0]
        if location.startswith(folder.rstrip("/") + "/")
        else ""
    )


def _convert(
    location: str,
    folder: str,
    to: Literal["eval", "json"],
    overwrite: bool,
    resolve: bool | Literal["core", "full"],
) -> str:
    target = join(folder, PurePath(location).stem + "." + to)
    if not overwrite:
        check_free(target, "another --output-dir")
    file = open_log(location)
    if isinstance(file, JsonFile):
        log = file.whole(resolve)
        samples: Iterable[EvalSample] = sorted(log.samples or (), key=sample_order)
    else:
        log, samples = file.header(), file.samples(resolve)
    store, name = store_for(target)
    store.replace(name, _chunks(log, samples, to, file))
    return target
