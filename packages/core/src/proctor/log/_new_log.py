"""Making the log of a run in its store, under the first name that is free."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from proctor.contracts import LogSink, LogStore, UsageError
from proctor.log._location import before_name, contained_store, join, store_for
from proctor.log._patience import Patience
from proctor.log._spill import LostSink, SpillingSink, patience_for

__all__ = ["NewLog", "create_log"]


class NewLog(NamedTuple):
    """A log that has nothing in it yet."""

    store: LogStore
    name: str
    location: str
    sink: LogSink


def create_log(
    log_dir: str,
    names: Iterable[str],
    store: LogStore | None,
    patience: Patience,
    on_spill: Callable[[str, str], object] | None,
) -> NewLog:
    """A log of the first of ``names`` that is free.

    Args:
        log_dir: the folder, as for ``LogWriter.open``.
        names: in the folder.
        store: where ``log_dir`` is, when the caller knows it.
        patience: says why writing waits.
        on_spill: told where the log goes on when its store is lost, and why.

    Raises:
        FileExistsError: none is free.
        UsageError: the folder cannot be written.
    """
    if store is None:
        store, folder = store_for(log_dir)
    else:
        folder = log_dir
    head = before_name(log_dir, folder)
    name, sink = _create(store, head, folder, names, patience)
    location = head + name
    if not store.local:
        sink = SpillingSink(store, name, sink, location, patience, on_spill)
    return NewLog(store, name, location, sink)


def _create(store: LogStore, head: str, folder: str, names: Iterable[str], patience: Patience) -> tuple[str, LogSink]:
    made: list[LogSink] = []
    for one in names:
        name = join(folder, one)
        try:
            if store.local:
                with contained_store(head + name):
                    return name, store.create(name)
            patience.write(name, partial(_made, store, name, made), away=patience_for(head + name))
            return name, made[0]
        except FileExistsError:
            continue
        except OSError as error:
            if not store.local:  # it was there when the run began: this log begins on this machine
                return name, LostSink(error)
            raise UsageError(
                f"the log folder {folder} cannot be written ({error.strerror or error}). Name another with --log-dir."
            ) from error
    raise FileExistsError(errno.EEXIST, "there is a log of that name", name)


def _made(store: LogStore, name: str, made: list[LogSink]) -> None:
    made.append(store.create(name))
