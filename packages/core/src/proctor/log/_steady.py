"""Reading a log while somebody writes it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from proctor.contracts import LogStore, Stat
from proctor.log._hold import held_here
from proctor.log._zip_read import BadLogError

__all__ = ["steadily"]

_T = TypeVar("_T")

_PAUSES = tuple(0.001 * 2**number for number in range(12))
"""Seconds before each further try, four in all: a machine that is short of memory or of cores stops a writer in the
middle of its copying for as long."""


def steadily(
    store: LogStore,
    name: str,
    stat: Stat,
    read: Callable[[Stat], _T],
    salvage: Callable[[Stat], _T] | None = None,
) -> _T:
    """What ``read`` makes of the log, read again while a writer is at work on it.

    A commit is one system call, yet the kernel copies it into the file page by page, and readers do not wait for that:
    they may see the beginning of a commit before its end is there. Such a log is torn only while its writer is alive,
    or when it has changed since it was looked at; every other one is torn for good.

    Args:
        store: where the log is.
        name: its name there.
        stat: what was known of it before.
        read: makes something of the log as it is now, given what the store knows of it (``stat`` at first); a
            ``BadLogError`` says that it is not whole.
        salvage: takes what there is of a log that is torn for good, or that stays torn; without it, the error of
            ``read`` is raised.

    Raises:
        BadLogError: it is torn, and ``salvage`` cannot help.
    """
    for pause in _PAUSES:
        try:
            return read(stat)
        except BadLogError:
            written = store.live(name) and not held_here(store, name)
            now = store.stat(name)  # after the lock: a writer that let go of it in between has changed the log
            if not written and now.etag == stat.etag:
                if salvage is None:
                    raise
                return salvage(stat)
        _wait(pause)
        stat = store.stat(name)
    try:
        return read(stat)
    except BadLogError as error:
        if salvage is not None:
            return salvage(stat)
        raise BadLogError(f"{error}; it is being written now: read it again in a moment") from error


def _wait(seconds: float) -> None:
    time.sleep(seconds)
