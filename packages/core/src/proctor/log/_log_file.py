"""One log, opened for reading: what its bytes are decides the format, not its name."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from proctor.contracts import LogStore, Stat, UsageError
from proctor.log._expand import Resolve, expand_pools, parse_sample, resolve_tree
from proctor.log._json import array_items, decode, validate
from proctor.log._layout import sample_member, sample_order
from proctor.log._location import store_for
from proctor.log._steady import steadily
from proctor.log._summary import summarise
from proctor.log._zip_format import LOCAL_MAGIC, Entry
from proctor.log._zip_read import BadLogError, ZipReader, keeping_end
from proctor.log._zip_write import member_name
from proctor.schema import ConfigUpdate, EvalLog, EvalSample, EvalSampleReductions, EvalSampleSummary

__all__ = ["EvalFile", "JsonFile", "LogFile", "SampleNotFoundError", "open_log", "top_level"]

SAMPLE = re.compile(r"samples/(.*)_epoch_(\d+)\.json", re.DOTALL)
"""Members that hold a sample; the parts of a chunked one stand in a folder ``<id>_epoch_<n>/``."""

_EMPTY_ZIP = b"PK\x05\x06"
_WHOLE = 256 << 20  # bytes up to which a log that is read as a whole is read in one go
_HEAD = 1 << 16  # bytes of a .json log that are looked at first for its header
_PROBE = re.compile(r"\s*(.)", re.DOTALL)

_T = TypeVar("_T")

_reductions = TypeAdapter(list[EvalSampleReductions])
_summaries = TypeAdapter(list[EvalSampleSummary])


class SampleNotFoundError(UsageError, IndexError):
    """A log has no such sample."""


class LogFile(ABC):
    """A log that can be read in parts."""

    def __init__(self, location: str, store: LogStore, name: str, stat: Stat) -> None:
        self.location = location
        self._store, self._name, self._stat = store, name, stat

    @property
    def etag(self) -> str:
        """That of the content that is being read."""
        return self._stat.etag

    @abstractmethod
    def header(self, reductions: bool = True) -> EvalLog:
        """The log without its samples, and without reduced scores when they are not wanted."""

    @abstractmethod
    def samples(self, resolve: Resolve = False) -> Iterable[EvalSample]:
        """All samples, by epoch and id."""

    @abstractmethod
    def sample(self, id: int | str, epoch: int, resolve: Resolve = False) -> EvalSample:
        """One sample.

        Raises:
            SampleNotFoundError: there is none of that id and epoch.
        """

    @abstractmethod
    def keys(self) -> list[tuple[str, int]]:
        """The id (as text) and epoch of every sample."""

    @abstractmethod
    def summaries(self) -> list[EvalSampleSummary]:
        """The summaries of the samples, in the order in which they were completed."""

    def page(self, offset: int, limit: int) -> list[EvalSampleSummary]:
        """``limit`` summaries from the ``offset``-th on."""
        return self.summaries()[offset : offset + limit]

    def _missing(self, id: int | str, epoch: int) -> SampleNotFoundError:
        return SampleNotFoundError(
            f"{self.location} has no sample {id!r} of epoch {epoch}; `proctor log dump` shows those it has."
        )


def open_log(location: str, format: Literal["auto", "eval", "json"] = "auto", *, whole: bool = False) -> LogFile:
    """The log at ``location``; ``whole`` says that all of it will be read.

    Raises:
        FileNotFoundError: there is nothing.
        BadLogError: what is there is not a log.
    """
    store, name = store_for(location)

    def kind(stat: Stat) -> tuple[str, Stat]:
        start = store.read(name, 0, 64)
        return (_kind(start) if format == "auto" else format), stat

    try:
        found, stat = steadily(store, name, store.stat(name), kind)
        if found == "eval":
            return EvalFile(location, store, name, stat, whole=whole)
        return JsonFile(location, store, name, stat)
    except IsADirectoryError as error:
        raise BadLogError(
            f"{location} is a folder, not a log: `proctor log list {location}` shows the logs in it."
        ) from error
    except BadLogError as error:
        raise BadLogError(f"{location} is not an evaluation log: {error}") from error


def _kind(start: bytes) -> Literal["eval", "json"]:
    """The format of a log that begins with these bytes."""
    if start[:4] in (LOCAL_MAGIC, _EMPTY_ZIP):
        return "eval"
    if re.match(rb"\s*\{", start):
        return "json"
    what = f"its first bytes are {start[:8]!r}" if start else "empty"
    raise BadLogError(f"neither a ZIP archive nor a JSON object ({what})")


class EvalFile(LogFile):
    """A log in the ``.eval`` format."""

    def __init__(self, location: str, store: LogStore, name: str, stat: Stat, *, whole: bool = False) -> None:
        super().__init__(location, store, name, stat)
        self._open(stat)
        if whole and self._stat.size <= _WHOLE:
            self.zip.load()

    def _open(self, stat: Stat) -> None:
        """Read the directory. What it lists stays where it is as long as the file is the same: commits only append."""
        store, name = self._store, self._name

        def directory(stat: Stat, salvage: bool = False) -> tuple[ZipReader, Stat]:
            def read(start: int, end: int) -> bytes:
                return store.read(name, start, end)

            # Where each read is a request, one gets the end of the log: the directory and the header before it.
            return ZipReader(read if store.local else keeping_end(read, stat.size), stat.size, salvage=salvage), stat

        self.zip, self._stat = steadily(store, name, stat, directory, lambda stat: directory(stat, salvage=True))

    def header(self, reductions: bool = True) -> EvalLog:
        if "header.json" in self.zip:
            log = self._parse("header.json", lambda raw: validate(EvalLog, raw))
            if reductions and "reductions.json" in self.zip:
                log.reductions = self._parse("reductions.json", _parse_reductions)
        elif "_journal/start.json" in self.zip:
            log = self._parse("_journal/start.json", lambda raw: validate(EvalLog, raw))
            log.status = "started"
            updates = [
                self._parse(name, lambda raw: validate(ConfigUpdate, raw)) for name in self.journal("config_updates")
            ]
            log.config_updates = updates or None
        else:
            raise BadLogError(
                f"{self.location} is not an evaluation log: it has neither header.json nor _journal/start.json"
            )
        _check_version(log.version, self.location)
        log.etag = self._stat.etag
        return _derived(log, self.location)

    def _parse(self, name: str, parse: Callable[[bytes], _T]) -> _T:
        """What ``parse`` makes of a member."""
        return self._steadily(name, lambda: parse(self._content(name)))

    def _content(self, name: str) -> bytes:
        try:
            return self.zip.read(name)
        except KeyError:  # another log stands there now
            raise BadLogError(f"{self.location}: {name} is not there any more.") from None

    def _steadily(self, name: str, read: Callable[[], _T]) -> _T:
        """What ``read`` makes of a member; of the log that stands there now when it was replaced by another."""

        def again(stat: Stat) -> _T:
            if stat.etag != self._stat.etag:
                self._open(stat)
            return self._explained(name, read)

        return steadily(self._store, self._name, self._stat, again)

    def _explained(self, name: str, read: Callable[[], _T]) -> _T:
        try:
            return read()
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise BadLogError(f"{self.location}: {name} does not fit at {where!r}: {first['msg']}") from error
        except BadLogError:
            raise
        except ValueError as error:
            raise BadLogError(f"{self.location}: {name} is not JSON: {error}") from error

    def journal(self, kind: str) -> list[str]:
        """The journal members of a kind, in the order of their numbers."""
        prefix = f"_journal/{kind}/"
        found = [name for name in self.zip.entries if name.startswith(prefix) and name.endswith(".json")]
        return sorted(found, key=lambda name: (len(name), name))

    def members(self) -> Iterator[tuple[str, int, Entry]]:
        """Id (as text), epoch and entry of each sample."""
        for name, entry in self.zip.entries.items():
            if name.startswith("samples/"):
                found = SAMPLE.fullmatch(name)
                if found:
                    yield found[1], int(found[2]), entry

    def keys(self) -> list[tuple[str, int]]:
        return [(id, epoch) for id, epoch, _ in self.members()]

    def samples(self, resolve: Resolve = False) -> Iterator[EvalSample]:
        for _, _, entry in sorted(self.members(), key=lambda member: (member[1], _padded(member[0]))):
            yield self._sample(entry.name, resolve)

    def sample(self, id: int | str, epoch: int, resolve: Resolve = False) -> EvalSample:
        name = member_name(sample_member(id, epoch)).decode()
        if name not in self.zip:
            if f"samples/{id}_epoch_{epoch}/sample.json" in self.zip:
                raise BadLogError(
                    f"{self.location}: sample {id!r} is stored in chunks, which can be copied but not read."
                )
            raise self._missing(id, epoch)
        return self._sample(name, resolve)

    def parsed(self, name: str) -> EvalSample:
        """The sample in the member ``name``."""
        return self._sample(name, False)

    def _sample(self, name: str, resolve: Resolve) -> EvalSample:
        return self._parse(name, lambda raw: parse_sample(raw, resolve))

    def _tables(self) -> list[str]:
        """The members that hold summaries."""
        return ["summaries.json"] if "summaries.json" in self.zip else self.journal("summaries")

    def rows(self) -> Iterator[Any]:
        """The summaries as JSON data, one after the other, none of them kept."""
        return (row for name in self._tables() for row in array_items(self.zip.stream(name)))

    def page(self, offset: int, limit: int) -> list[EvalSampleSummary]:
        def read() -> list[EvalSampleSummary]:
            return [EvalSampleSummary.model_validate(row) for row in islice(self.rows(), offset, offset + limit)]

        return self._steadily("a member with summaries", read)

    def summaries(self) -> list[EvalSampleSummary]:
        rows: dict[tuple[str, int], EvalSampleSummary] = {}
        for name in self._tables():
            for row in self._parse(name, _parse_summaries):
                rows[str(row.id), row.epoch] = row
        return list(rows.values())


def _padded(id: str) -> str:
    return id.zfill(20) if id.isdecimal() else id


def _parse_summaries(raw: bytes) -> list[EvalSampleSummary]:
    try:
        return _summaries.validate_json(raw)
    except ValidationError:
        return _summaries.validate_python(decode(raw))


def _parse_reductions(raw: bytes) -> list[EvalSampleReductions]:
    try:
        return _reductions.validate_json(raw)
    except ValidationError:  # lone surrogates, or no array
        value = decode(raw)
        return _reductions.validate_python(value) if isinstance(value, list) else []


class JsonFile(LogFile):
    """A log in the ``.json`` format. Everything but the header needs the whole file."""

    def __init__(self, location: str, store: LogStore, name: str, stat: Stat) -> None:
        super().__init__(location, store, name, stat)
        self._log: EvalLog | None = None

    def header(self, reductions: bool = True) -> EvalLog:
        return steadily(self._store, self._name, self._stat, self._header)

    def _header(self, stat: Stat) -> EvalLog:
        log = self._validated(_json_header(self._store, self._name, stat.size, self.location))
        log.etag = stat.etag
        return _derived(log, self.location)

    def whole(self, resolve: Resolve = False) -> EvalLog:
        """The log with all samples."""
        return steadily(self._store, self._name, self._stat, lambda stat: self._whole(stat, resolve))

    def _whole(self, stat: Stat, resolve: Resolve) -> EvalLog:
        raw = self._store.read(self._name)
        if resolve:
            tree = self._tree(raw)
            for sample in tree.get("samples") or ():
                if isinstance(sample, dict):
                    resolve_tree(sample, full=resolve != "core")
            log = self._validated(tree)
        else:
            try:
                log = EvalLog.model_validate_json(raw)
            except ValidationError:
                log = self._validated(self._tree(raw))
        for sample in log.samples or ():
            expand_pools(sample)
        log.etag = stat.etag
        return _derived(log, self.location)

    def text(self) -> str:
        """The whole file; bytes that are no UTF-8 (a cut character) are replaced."""
        return self._store.read(self._name).decode("utf-8", "replace")

    def _tree(self, raw: bytes) -> dict[str, Any]:
        try:
            tree = decode(raw)
        except ValueError as error:
            raise BadLogError(
                f"{self.location} is not whole JSON ({error}). If its run has died, `proctor log recover "
                f"{self.location}` makes a log of what is whole."
            ) from error
        if not isinstance(tree, dict):
            raise BadLogError(f"{self.location} is not an evaluation log: it is no JSON object")
        return tree

    def _validated(self, tree: dict[str, Any]) -> EvalLog:
        _check_version(tree.get("version", 2), self.location)
        try:
            return EvalLog.model_validate(tree)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise BadLogError(f"{self.location} is not an evaluation log: at {where!r}: {first['msg']}") from error

    def _loaded(self, resolve: Resolve) -> list[EvalSample]:
        if resolve:
            return self.whole(resolve).samples or []
        if self._log is None:
            self._log = self.whole()
        return self._log.samples or []

    def keys(self) -> list[tuple[str, int]]:
        return [(str(sample.id), sample.epoch) for sample in self._loaded(False)]

    def samples(self, resolve: Resolve = False) -> list[EvalSample]:
        return sorted(self._loaded(resolve), key=sample_order)

    def sample(self, id: int | str, epoch: int, resolve: Resolve = False) -> EvalSample:
        for sample in self._loaded(resolve):
            if str(sample.id) == str(id) and sample.epoch == epoch:
                return sample
        raise self._missing(id, epoch)

    def summaries(self) -> list[EvalSampleSummary]:
        return [summarise(sample) for sample in self._loaded(False)]


def _check_version(version: object, location: str) -> None:
    if isinstance(version, int) and version > 2:
        raise BadLogError(f"{location} has format version {version}; this Proctor reads up to 2. A newer one may help.")


def _json_header(store: LogStore, name: str, size: int, location: str) -> dict[str, Any]:
    """The fields of a ``.json`` log before its samples, from as little of the file as holds them."""
    wanted = _HEAD
    while True:
        text = store.read(name, 0, wanted).decode("utf-8", "ignore")
        found = top_level(text)
        if found is not None:
            return found[0]
        if wanted >= size:
            raise BadLogError(f"{location} is not an evaluation log: its JSON ends too early")
        wanted *= 4


def top_level(text: str) -> tuple[dict[str, Any], int] | None:
    """The keys and values of the object in ``text`` up to ``samples``, and where the value of that begins.

    ``None`` when the text ends before; the object's end when there are no samples.
    """
    decoder = json.JSONDecoder()
    found: dict[str, Any] = {}
    place = text.find("{") + 1
    try:
        while True:
            mark = _PROBE.match(text, place)
            if mark is None:
                return None
            if mark[1] == "}":
                return found, mark.end()
            if mark[1] == ",":
                place = mark.end()
                mark = _PROBE.match(text, place)
                if mark is None:
                    return None
            key, place = decoder.raw_decode(text, mark.start(1))
            mark = _PROBE.match(text, place)
            if mark is None or mark[1] != ":":
                return None
            if key in ("samples", "reductions"):
                return found, mark.end()
            value = _PROBE.match(text, mark.end())
            if value is None:
                return None
            found[key], place = decoder.raw_decode(text, value.start(1))
    except (ValueError, RecursionError):  # the end is missing, or it is nested too deeply
        return None


def _derived(log: EvalLog, location: str) -> EvalLog:
    """What is computed on reading: tags and metadata with later edits, and what older logs lack."""
    log.location = location
    spec = log.eval
    if not spec.eval_id:
        identity = "\n".join((spec.run_id, spec.created, spec.task, spec.task_id, spec.model))
        spec.eval_id = blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=11).hexdigest()
    older = spec.config.__pydantic_extra__
    if older and "max_messages" in older:
        spec.config.message_limit = older.pop("max_messages")
    apply_updates(log)
    return log


def apply_updates(log: EvalLog) -> None:
    """Bring ``tags`` and ``metadata`` up to date with what the run said and the edits since."""
    tags, metadata = list(log.eval.tags or ()), dict(log.eval.metadata or {})
    for update in log.log_updates or ():
        for edit in update.edits:
            if edit.get("type") == "tags":
                gone = set(edit.get("tags_remove") or ())
                tags = [tag for tag in tags if tag not in gone]
                tags += [tag for tag in edit.get("tags_add") or () if tag not in tags]
            elif edit.get("type") == "metadata":
                metadata.update(edit.get("metadata_set") or {})
                for key in edit.get("metadata_remove") or ():
                    metadata.pop(key, None)
    log.tags, log.metadata = tags, metadata
