"""A log in the ``.eval`` format, opened for reading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from proctor.contracts import LogStore, Stat
from proctor.log._expand import Resolve, parse_sample
from proctor.log._json import array_items, decode, validate
from proctor.log._layout import sample_member
from proctor.log._log_file import LogFile, check_version, derived, misfit
from proctor.log._steady import steadily
from proctor.log._zip_format import Entry
from proctor.log._zip_read import BadLogError, ZipReader, keeping_end
from proctor.log._zip_write import member_name
from proctor.schema import ConfigUpdate, EvalLog, EvalSample, EvalSampleReductions, EvalSampleSummary

__all__ = ["SAMPLE", "EvalFile"]

SAMPLE = re.compile(r"samples/(.*)_epoch_(\d+)\.json", re.DOTALL)
"""Members that hold a sample; the parts of a chunked one stand in a folder ``<id>_epoch_<n>/``."""

_WHOLE = 256 << 20  # bytes up to which a log that is read as a whole is read in one go

_T = TypeVar("_T")

_reductions = TypeAdapter(list[EvalSampleReductions])
_summaries = TypeAdapter(list[EvalSampleSummary])


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
        check_version(log.version, self.location)
        log.etag = self._stat.etag
        return derived(log, self.location)

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
            raise BadLogError(f"{self.location}: {name} does not fit {misfit(error)}") from error
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
