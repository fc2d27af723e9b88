"""Logs that their store could not take: they go on in a folder of this machine, until `proctor log push` sends them."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from proctor.contracts import LogSink, LogStore, UsageError
from proctor.log._file_store import FileStore
from proctor.log._patience import Patience

__all__ = [
    "LostSink",
    "Spill",
    "SpillingSink",
    "drop_spill",
    "list_spills",
    "note_reach",
    "patience_for",
    "read_spill",
    "spill_folder",
    "store_patience",
]

_PATIENCE = 300.0  # seconds
_NOTE = ".push"  # what is known of a spilled log stands beside it, under its name with this ending
_PIECE = 8 << 20  # bytes that are copied at a time


@dataclass(frozen=True, slots=True)
class Spill:
    """A log that waits to be sent.

    Args:
        path: where it is.
        location: where it belongs.
        reason: why it is not there.
        host: where its run wrote it.
        pid: the process of the run there.
    """

    path: str
    location: str
    reason: str
    host: str = ""
    pid: int = 0


def spill_folder() -> Path:
    """Where such logs are kept: ``PROCTOR_SPILL_DIR``, else a folder for the state of programs."""
    if given := os.environ.get("PROCTOR_SPILL_DIR"):
        return Path(given).expanduser()
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "proctor" / "spill"


def store_patience() -> float:
    """How long a store that is out of reach is tried, in seconds: ``PROCTOR_STORE_PATIENCE``.

    Raises:
        UsageError: that is no number of seconds.
    """
    given = os.environ.get("PROCTOR_STORE_PATIENCE", "")
    with suppress(ValueError):
        if (seconds := float(given or _PATIENCE)) >= 0:
            return seconds
    raise UsageError(f"PROCTOR_STORE_PATIENCE is {given!r}: give a number of seconds, such as 300.")


_given_up: dict[str, float] = {}  # when a store was out of reach last, since it was given up
_guard = threading.Lock()


def patience_for(location: str) -> float:
    """How long a log's store is tried, in seconds: once only, when it was given up for another log a while ago."""
    seconds = store_patience()
    with _guard:
        lost = _given_up.get(_store_of(location))
    return 0.0 if lost is not None and time.monotonic() - lost < seconds else seconds


def note_reach(location: str, *, reached: bool) -> None:
    """Remember whether a log's store could be reached, for the other logs of this process."""
    with _guard:
        if reached:
            _given_up.pop(_store_of(location), None)
        else:
            _given_up[_store_of(location)] = time.monotonic()


def _store_of(location: str) -> str:
    scheme, _, rest = location.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def list_spills() -> list[Spill]:
    """The logs that wait to be sent, by name."""
    notes = sorted(spill_folder().glob(f"*{_NOTE}"))
    return [spill for note in notes if (spill := _read_note(str(note).removesuffix(_NOTE))) is not None]


def read_spill(path: str) -> Spill:
    """The spilled log at ``path``.

    Raises:
        UsageError: there is none.
    """
    spill = _read_note(path)
    if spill is None:
        raise UsageError(f"{path} is no log that waits to be sent: `proctor log push` lists those there are.")
    return spill


def _read_note(path: str) -> Spill | None:
    try:
        known = json.loads(Path(path + _NOTE).read_bytes())
        if os.path.isfile(path):
            host, pid = str(known.get("host", "")), int(known.get("pid", 0))
            return Spill(path, str(known["location"]), str(known["reason"]), host, pid)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # a run died while it wrote the note, before there was a log
    return None


def note_of(path: str) -> str:
    """The file that says where the log at ``path`` belongs."""
    return path + _NOTE


def drop_spill(path: str) -> None:
    """Remove the log at ``path``, which stands elsewhere or is not needed, and what is known of it."""
    os.unlink(path)
    os.unlink(note_of(path))


class LostSink(LogSink):
    """Of a log that its store could not even create, however long it was tried."""

    def __init__(self, error: OSError) -> None:
        self._error = error

    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        raise self._error

    def close(self) -> None:
        """There is nothing to give up."""


class SpillingSink(LogSink):
    """The sink of a store that can be lost: the log goes on as a file of this machine then, with all that was before.

    A copy of the log is kept beside it in a file without a name, so nothing is left behind by a run that is killed:
    what was acknowledged is in the store. The end of the log is made from that copy, too, without asking the store.

    Args:
        store: where the log is.
        name: its name there.
        sink: writes it.
        location: of the log.
        patience: tells the person who watches why writing waits, and when that is to end.
        on_spill: told of the new place and the reason, once, on the writer's thread.
    """

    def __init__(
        self,
        store: LogStore,
        name: str,
        sink: LogSink,
        location: str,
        patience: Patience,
        on_spill: Callable[[str, str], object] | None = None,
    ) -> None:
        self._store, self._name, self._sink, self._location = store, name, sink, location
        self._patience, self._on_spill = patience, on_spill
        self._created = not isinstance(sink, LostSink)
        self._copy: IO[bytes] | None = _nameless()
        self._end = 0  # of what was committed, in the copy
        self._directory = b""
        self._replaced = False  # the log is whole in its store, whatever becomes of the sink
        self._files = FileStore()
        self._spill: LogSink | None = None
        self.path = ""
        """Where the log goes on since its store was lost."""

    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        if self._spill is None:
            self._keep(segment)
            try:
                self._try(lambda: self._sink.commit(segment, directory))
            except OSError as error:
                self._lose(error)
        if self._spill is not None:
            self._spill.commit(segment, directory)
        self._end += len(segment)
        self._directory = bytes(directory)

    def read(self, start: int, end: int) -> bytes:
        """The bytes ``[start, end)`` of what was committed."""
        if self._spill is not None:
            return self._files.read(self.path, start, end)
        if self._copy is None:
            return self._store.read(self._name, start, end)
        self._copy.seek(start)
        return self._copy.read(end - start)

    def replace(self, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Write the log as a whole; ``chunks`` may read what was committed, and is called for each try."""
        if self._spill is None:
            try:
                self._try(lambda: self._store.replace(self._name, chunks()))
                self._replaced = True
                return
            except OSError as error:
                self._lose(error)
        self._files.replace(self.path, chunks())

    def close(self) -> None:
        if self._spill is None:
            try:
                self._try(self._sink.close)
            except OSError as error:
                if not self._replaced:
                    self._lose(error)
                self._sink.abandon()
        if self._spill is not None:
            self._spill.close()
        self._drop_copy()

    def abandon(self) -> None:
        (self._spill or self._sink).abandon()
        self._drop_copy()

    def _try(self, attempt: Callable[[], object]) -> None:
        seconds = patience_for(self._location) if self._created else 0.0
        self._patience.write(self._location, attempt, away=seconds)
        note_reach(self._location, reached=True)

    def _keep(self, segment: bytes) -> None:
        if self._copy is not None:
            try:
                self._copy.seek(self._end)
                self._copy.write(segment)
                self._copy.flush()
            except OSError:  # no space: the store has it all, as long as it is there
                self._drop_copy()

    def _drop_copy(self) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            with suppress(OSError):
                copy.close()

    def _lose(self, error: OSError) -> None:
        """Go on in a file.

        Raises:
            OSError: there is no copy of what was written before, or no place for it.
        """
        if self._copy is None:
            raise error
        reason = error.strerror or str(error)
        path, spill = self._new_file(reason)
        try:
            for piece in self._pieces():
                spill.commit(piece, b"")
            spill.commit(b"", self._directory)
        except BaseException:
            spill.close()
            raise
        self._spill, self.path = spill, path
        note_reach(self._location, reached=False)
        self._sink.abandon()
        if self._on_spill is not None:
            self._on_spill(path, reason)

    def _pieces(self) -> Iterator[bytes]:
        for start in range(0, self._end, _PIECE):
            yield self.read(start, min(start + _PIECE, self._end))

    def _new_file(self, reason: str) -> tuple[str, LogSink]:
        stem, suffix = os.path.splitext(self._location.replace("\\", "/").rpartition("/")[2])
        copy = 1
        while True:
            path = str(spill_folder() / (f"{stem}-{copy}{suffix}" if copy > 1 else f"{stem}{suffix}"))
            try:
                sink = self._files.create(path)
            except FileExistsError:
                copy += 1
                continue
            note = asdict(Spill(path, self._location, reason, socket.gethostname(), os.getpid()))
            self._files.replace(note_of(path), [json.dumps(note, indent=2).encode()])
            return path, sink


def _nameless() -> IO[bytes] | None:
    for folder in (spill_folder(), None):
        with suppress(OSError):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            return tempfile.TemporaryFile(dir=folder)
    return None
