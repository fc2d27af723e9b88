"""Which logs a folder holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from proctor.contracts import Stat
from proctor.log._location import before_name, store_for
from proctor.log._open import read_header
from proctor.schema import EvalLog

__all__ = ["EvalLogInfo", "list_eval_logs", "read_headers"]

_AT_ONCE = 16  # headers that are read side by side
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}[:-]\d{2}[:-]\d{2}")


@dataclass(frozen=True, slots=True)
class EvalLogInfo:
    """A log as a listing shows it, from its name alone where that says enough.

    Args:
        name: its location.
        size: in bytes.
        mtime: the last change, in milliseconds since the epoch.
        task: the task's name; empty when it cannot be told.
        task_id: the task's id; a retry keeps it.
        suffix: what follows the id (``recovered``, ``scored``), or ``None``.
    """

    name: str
    size: int
    mtime: float
    task: str = ""
    task_id: str = ""
    suffix: str | None = None

    @property
    def type(self) -> Literal["file"]:
        """Always ``file``; other tools expect the field."""
        return "file"


def list_eval_logs(
    log_dir: str = "./logs",
    *,
    recursive: bool = True,
    descending: bool = True,
    formats: tuple[str, ...] = ("eval", "json"),
    filter: Callable[[EvalLog], bool] | None = None,
) -> list[EvalLogInfo]:
    """The logs in ``log_dir``, by time of change.

    Every ``*.eval`` counts, whatever it holds, and each ``*.json`` whose name starts with a timestamp.

    Args:
        log_dir: a folder, on this machine or in a store.
        recursive: look into folders below it, too.
        descending: newest first.
        formats: of the files.
        filter: takes headers; logs whose header can't be read are left out when it is given.
    """
    store, folder = store_for(str(log_dir))
    head = before_name(str(log_dir), folder)
    found = [
        (head + name, stat)
        for name, stat in store.list(folder, recursive=recursive)
        if _is_log(name.replace("\\", "/").rpartition("/")[2], formats)
    ]
    unnamed = [location for location, _ in found if filter is not None or _named(location) is None]
    headers = dict(zip(unnamed, read_headers(unnamed), strict=True))
    infos = [_info(location, stat, headers.get(location)) for location, stat in found]
    if filter is not None:
        infos = [info for info in infos if isinstance(header := headers[info.name], EvalLog) and filter(header)]
    return sorted(infos, key=lambda info: (info.mtime, info.name), reverse=descending)


def _is_log(name: str, formats: tuple[str, ...]) -> bool:
    if name.startswith("."):  # a temporary file of a write
        return False
    if name.endswith(".eval"):
        return "eval" in formats
    return name.endswith(".json") and "json" in formats and _TIMESTAMP.match(name) is not None


def _named(location: str) -> tuple[str, str, str | None] | None:
    """Task, task id and suffix, where the name has them."""
    stem = location.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    parts = stem.split("_")
    if len(parts) < 3 or not _TIMESTAMP.match(stem):
        return None
    # With four parts the fourth is the id: the third is the model where the name has one.
    last = parts[3] if len(parts) > 3 else parts[2]
    task_id, _, suffix = last.partition("-")
    return parts[1], task_id, suffix or None


def _info(location: str, stat: Stat, header: EvalLog | Exception | None) -> EvalLogInfo:
    named = _named(location)
    if named is None and isinstance(header, EvalLog):
        named = header.eval.task, header.eval.task_id, None
    return EvalLogInfo(location, stat.size, stat.mtime * 1000, *(named or ("", "", None)))


def read_headers(locations: Sequence[str]) -> Iterator[EvalLog | Exception]:
    """The headers of logs, in their order, without reduced scores; for what has none, why not.

    Those in stores that are not on this machine are read side by side.
    """
    if all(store_for(location)[0].local for location in locations):
        yield from map(read_header, locations)
        return
    with ThreadPoolExecutor(min(_AT_ONCE, len(locations))) as threads:
        yield from threads.map(read_header, locations)
