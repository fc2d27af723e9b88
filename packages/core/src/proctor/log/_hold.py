"""Holding a finished or dead log for an edit or a resume, and knowing that it is this process that holds it."""

from __future__ import annotations

import threading
from collections import Counter

from proctor.contracts import LogLease, LogStore
from proctor.log._location import missing_log, not_a_log

__all__ = ["held_here", "hold_log"]

_held: Counter[tuple[type[LogStore], str]] = Counter()
_guard = threading.Lock()


class _Held(LogLease):
    def __init__(self, store: LogStore, name: str) -> None:
        self._lease: LogLease | None = store.hold(name)
        self._key = type(store), name
        with _guard:
            _held[self._key] += 1

    def close(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            with _guard:
                _held[self._key] -= 1
            lease.close()


def hold_log(store: LogStore, name: str, location: str) -> LogLease:
    """Keep others from editing or resuming a log.

    Raises:
        LogBusyError: somebody else holds or writes it.
        UsageError: there is no log.
        BadLogError: it is a folder.
    """
    try:
        return _Held(store, name)
    except FileNotFoundError as error:
        raise missing_log(location) from error
    except IsADirectoryError as error:
        raise not_a_log(location) from error


def held_here(store: LogStore, name: str) -> bool:
    """Whether this process holds a log: then nobody writes it, though the store calls it live."""
    with _guard:
        return _held[type(store), name] > 0
