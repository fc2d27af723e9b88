"""Sending logs that were kept on this machine to the store where they belong."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from proctor.contracts import LogBusyError, LogStore, Stat, UsageError
from proctor.log._file_store import FileStore
from proctor.log._location import store_for
from proctor.log._open import read_header
from proctor.log._spill import Spill, drop_spill
from proctor.schema import EvalLog

__all__ = ["Pushed", "push_spill"]

_PIECE = 8 << 20  # bytes that are sent and compared at a time


@dataclass(frozen=True, slots=True)
class Pushed:
    """A log that stands where it belongs now.

    Args:
        location: where.
        size: in bytes.
        sent: whether it was sent now; it was there already if not, since an earlier try had got so far.
    """

    location: str
    size: int
    sent: bool


def push_spill(spill: Spill) -> Pushed:
    """Send a log to its store, prove that it stands there byte for byte, and only then remove it here.

    What the store has of an earlier state of the same log is replaced. May be called again after any failure.

    Raises:
        UsageError: its run is alive, another log stands there, or somebody else works on that.
        OSError: the store does not take it.
    """
    files = FileStore()
    if files.live(spill.path):
        raise UsageError(f"{spill.path} is being written by a run that is alive. Push it when that has ended.")
    store, name = store_for(spill.location)
    size = files.stat(spill.path).size
    with ExitStack() as stack:
        with suppress(FileNotFoundError):
            try:
                stack.enter_context(store.hold(name))
            except LogBusyError as busy:
                # Its own run has ended, and could not give back what it had in the store. Who else holds nothing by
                # that can't hold it now; what changes it all the same is seen by its etag.
                if (busy.host, busy.pid) != (spill.host, spill.pid):
                    raise
        there = _stat(store, name)
        sent = there is None or not _same(spill.path, size, store, name, there)
        if sent:
            if there is not None:
                _check_earlier(spill, there)
            store.replace(name, _pieces(spill.path, size), None if there is None else there.etag)
            there = _stat(store, name)
            if there is None or not _same(spill.path, size, store, name, there):
                raise OSError(
                    errno.EIO,
                    f"the store has something else than was sent; {spill.path} stays. Push it again",
                    spill.location,
                )
    drop_spill(spill.path)
    return Pushed(spill.location, size, sent)


def _stat(store: LogStore, name: str) -> Stat | None:
    try:
        return store.stat(name)
    except FileNotFoundError:
        return None


def _pieces(path: str, size: int) -> Iterator[bytes]:
    files = FileStore()
    for start in range(0, size, _PIECE):
        yield files.read(path, start, start + _PIECE)


def _same(path: str, size: int, store: LogStore, name: str, there: Stat) -> bool:
    """Whether both have the same bytes."""
    if there.size != size:
        return False
    starts = range(0, size, _PIECE)
    return all(
        piece == store.read(name, start, min(start + _PIECE, size))
        for start, piece in zip(starts, _pieces(path, size), strict=True)
    )


def _check_earlier(spill: Spill, there: Stat) -> None:
    """Refuse to replace what is not an unfinished state of the same log."""
    if there.size == 0:
        return
    mine, theirs = read_header(spill.path), read_header(spill.location)
    if isinstance(theirs, EvalLog) and isinstance(mine, EvalLog) and theirs.eval.eval_id == mine.eval.eval_id:
        if theirs.status == "started":
            return
        what = f"has been changed or recovered since (status {theirs.status})"
    else:
        what = "is another log"
    raise UsageError(
        f"what stands at {spill.location} {what}: it is not replaced. Compare it with {spill.path} "
        "(`proctor log dump`), and copy that yourself if you want both."
    )
