"""Which samples an earlier log has, and what became of them: what a resume must know before its first request."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from proctor.contracts import LogBusyError, LogLease, LogStore, UsageError
from proctor.log._encode import encode_sample
from proctor.log._eval_file import EvalFile
from proctor.log._hold import hold_log
from proctor.log._json import decode
from proctor.log._json_file import JsonFile
from proctor.log._layout import sample_member
from proctor.log._location import missing_log, store_for
from proctor.log._log_file import LogFile
from proctor.log._open import open_log
from proctor.log._outcomes import CANCELLED, error_kind
from proctor.log._recover import json_samples
from proctor.log._reuse import Reused
from proctor.log._summary import summary_fields
from proctor.log._zip_format import Entry
from proctor.log._zip_read import BadLogError
from proctor.log._zip_write import member_name
from proctor.schema import EvalLog, EvalSample

__all__ = ["LogIndex", "SampleState", "index_eval_log"]

SampleState: TypeAlias = Literal["done", "error", "cancelled", "invalidated"]
"""What became of a sample that a log has. One that hit a limit is done: it was scored."""

Wanted: TypeAlias = Callable[[int | str, int], bool]
"""Whether the sample of an id and epoch is wanted."""

_STATES: tuple[SampleState, ...] = ("done", "error", "cancelled", "invalidated")
_MOST = (1 << 14) - 1  # attempts that are counted
_GROUP = 4 << 20  # stored bytes that are copied at once
_MANY = 250  # or so many samples: a commit takes a few milliseconds of the interpreter
_CHUNKED = "/sample.json"


class LogIndex:
    """An entry for each sample of a log: about 200 bytes. Made by ``index_eval_log``; the samples are not read."""

    def __init__(self, location: str, store: LogStore, name: str, file: LogFile, lease: LogLease | None) -> None:
        self.location = location
        """Where the log is."""
        self._store, self._name, self._file = store, name, file
        self._lease = lease
        # By the name of the member: the place of its record, attempts (14 bits), state (2 bits).
        self._known: dict[str, int] = {}
        self.invalidated: set[str] = set()
        """The uuids of its samples that must not count."""
        if isinstance(file, EvalFile):
            self.header = file.header(reductions=False)
            self._index_zip(file)
        else:
            assert isinstance(file, JsonFile)
            self.header, samples = json_samples(file)
            self.header.samples = None
            for sample in samples:
                self._note(sample_name(sample.id, sample.epoch), 0, summary_fields(sample))

    header: EvalLog
    """The log without samples; ``started`` when its run died."""

    def __len__(self) -> int:
        return len(self._known)

    def state(self, id: int | str, epoch: int) -> SampleState | None:
        """What became of a sample; ``None`` when the log does not have it."""
        packed = self._known.get(sample_name(id, epoch))
        return None if packed is None else _STATES[packed & 3]

    def attempts(self, id: int | str, epoch: int) -> int:
        """How often the sample was run until it was recorded so, over all logs that went into this one."""
        return (self._known.get(sample_name(id, epoch), 0) >> 2) & _MOST

    def counts(self) -> dict[SampleState, int]:
        """How many samples are in which state."""
        found = Counter(packed & 3 for packed in self._known.values())
        return {state: found[number] for number, state in enumerate(_STATES) if found[number]}

    def sample(self, id: int | str, epoch: int) -> EvalSample:
        """One sample.

        Raises:
            SampleNotFoundError: the log does not have it.
        """
        return self._file.sample(id, epoch)

    def invalidate(self, uuids: Collection[str]) -> None:
        """Take the samples with these uuids for invalidated, too: copies of what was invalidated in another log."""
        for row in self.rows():
            name = sample_name(row["id"], row["epoch"])
            packed = self._known.get(name)
            if row.get("uuid") in uuids and packed is not None and packed & 3 == 0:
                self._known[name] = packed | _STATES.index("invalidated")

    def location_from(self, folder: str) -> str:
        """The location as a log in ``folder`` names it: without the folder when they share it, for both may move."""
        own, name = self.location.rpartition("/")[::2]
        return name if own.rstrip("/") == folder.rstrip("/").removeprefix("./") else self.location

    def hold(self) -> None:
        """Keep others from resuming or changing the log until ``release``. Harmless when it is held already.

        Raises:
            LogBusyError: somebody else holds it, or writes it.
            UsageError: it has changed since it was indexed.
        """
        if self._lease is not None:
            return
        self._lease = hold_log(self._store, self._name, self.location)
        if self._store.stat(self._name).etag != self._file.etag:
            self.release()
            raise UsageError(f"{self.location} has changed since it was read. Try again.")

    def release(self) -> None:
        """Let go of the log. Harmless when it is not held."""
        if self._lease is not None:
            self._lease.close()
            self._lease = None

    def rows(self) -> Iterator[dict[str, Any]]:
        """The fields of all summaries as the log has them, in the order in which the samples were completed."""
        if isinstance(self._file, EvalFile):
            yield from self._file.rows()
            for name in self._unlisted:
                yield summary_fields(self._file.parsed(name))
        elif isinstance(self._file, JsonFile):
            yield from map(summary_fields, json_samples(self._file)[1])

    def reused(self, wanted: Wanted) -> Iterator[list[Reused]]:
        """The samples that are done and wanted, for a new log; a few megabytes at a time, none of them decoded."""
        group: list[tuple[dict[str, Any], Entry]] = []
        size = 0
        for row, sample in self._all():
            id, epoch = row["id"], row["epoch"]
            if self.state(id, epoch) != "done" or not wanted(id, epoch):
                continue
            if sample is not None:
                yield [Reused(row, encode_sample(sample), None)]
                continue
            assert isinstance(self._file, EvalFile)
            entry = self._file.zip.at(self._known[sample_name(id, epoch)] >> 16)
            group.append((row, entry))
            size += entry.compressed
            if size >= _GROUP or len(group) >= _MANY:
                yield self._stored(group)
                group, size = [], 0
        if group:
            yield self._stored(group)

    def _stored(self, group: Sequence[tuple[dict[str, Any], Entry]]) -> list[Reused]:
        assert isinstance(self._file, EvalFile)
        stored = {entry.offset: data for entry, data in self._file.zip.raw_many([entry for _, entry in group])}
        return [Reused(row, stored[entry.offset], entry) for row, entry in group]

    def _all(self) -> Iterator[tuple[dict[str, Any], EvalSample | None]]:
        """The summaries; with the sample itself where it had to be decoded anyway."""
        if isinstance(self._file, JsonFile):
            for sample in json_samples(self._file)[1]:
                yield summary_fields(sample), sample
        else:
            for row in self.rows():
                yield row, None

    def _index_zip(self, file: EvalFile) -> None:
        places = file.zip.places()
        if any(name.endswith(_CHUNKED) and name.startswith("samples/") for name in places):
            raise BadLogError(
                f"{self.location} has samples that are stored in chunks: they can't be gone on from. Evaluate anew."
            )
        try:
            for row in file.rows():
                name = sample_name(row["id"], row["epoch"])
                place = places.get(name)
                if place is not None and row.get("completed", True):
                    self._note(name, place, row)
        except BadLogError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise BadLogError(f"{self.location}: its summaries make no sense ({error!r}).") from error
        # A write was cut behind the samples and before their summaries: they are whole, and were paid for.
        self._unlisted = [name for name in places if name.startswith("samples/") and name not in self._known]
        for name in self._unlisted:
            self._note(name, places[name], summary_fields(file.parsed(name)))
        if self.header.invalidated:
            self._look_for_invalidated(file)

    def _note(self, name: str, place: int, row: Mapping[str, Any]) -> None:
        attempts = min(1 + (row.get("retries") or 0), _MOST)
        state = _state(row)
        self._known[name] = place << 16 | attempts << 2 | _STATES.index(state)
        if state == "invalidated" and row.get("uuid"):
            self.invalidated.add(row["uuid"])

    def _look_for_invalidated(self, file: EvalFile) -> None:
        """Summaries do not say it, so the samples must; only those of a log some of whose samples are."""
        for name, packed in self._known.items():
            if packed & 3 == 0:
                raw = file.zip.content(file.zip.at(packed >> 16))
                if b'"invalidation"' not in raw or (sample := decode(raw)).get("invalidation") is None:
                    continue
                self._known[name] = packed | _STATES.index("invalidated")
                if sample.get("uuid"):
                    self.invalidated.add(sample["uuid"])


def sample_name(id: int | str, epoch: int) -> str:
    """The name of a sample's member as a directory has it."""
    name = sample_member(id, epoch)
    return name if name.isascii() and len(name) < 1000 else member_name(name).decode()


def _state(row: Mapping[str, Any]) -> SampleState:
    if row.get("invalidation") is not None:
        return "invalidated"
    error = row.get("error")
    if error is None:
        return "done"
    return "cancelled" if error_kind(str(error)) in CANCELLED else "error"


def index_eval_log(location: str | os.PathLike[str], *, hold: bool = False) -> LogIndex:
    """What the log at ``location`` has, from its header and summaries; of a run that died, from its journal.

    Args:
        location: a path or an URL.
        hold: keep others from resuming it, until ``LogIndex.release``.

    Raises:
        UsageError: there is no log, or what is there is none.
        LogBusyError: its run is alive; or, with ``hold``, somebody else holds it.
    """
    place = os.fspath(location)
    store, name = store_for(place)
    lease = None
    try:
        if hold:
            lease = hold_log(store, name, place)
        elif store.live(name):
            raise LogBusyError(name)
        return LogIndex(place, store, name, open_log(place), lease)
    except BaseException as error:
        if lease is not None:
            lease.close()
        if isinstance(error, FileNotFoundError):
            raise missing_log(place) from error
        raise
