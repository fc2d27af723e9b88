"""What a folder holds, by names and headers: the logs that a set may go on with, and what is none of its business."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

from proctor.contracts import LogStore
from proctor.engine import logged_unit
from proctor.log import EvalLogInfo, list_eval_logs, read_headers, store_for
from proctor.schema import EvalLog

__all__ = ["Alien", "Folder", "base_name", "first_line", "scan_folder"]

# What the set itself, a running log, the viewer and the peer leave beside logs.
_COMPANION = re.compile(r"(eval-set|logs|listing)\.json|.*\.(lease|parts|buffer|checkpoints|shards)")


@dataclass(frozen=True, slots=True)
class Alien:
    """A file that is left alone, and what it is."""

    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Folder:
    """The content of a log folder; folders below it are not looked into.

    Args:
        logs: headers of Proctor's logs, newest first.
        aliens: everything else but hidden files and companions of logs.
    """

    logs: tuple[EvalLog, ...]
    aliens: tuple[Alien, ...]


def scan_folder(log_dir: str) -> Folder:
    """Read the headers of all logs in ``log_dir``. Any bytes at all may be there; nothing is changed. Blocks."""
    store, folder = store_for(log_dir)
    logs: list[tuple[str, float, str, EvalLog]] = []
    aliens: list[Alien] = []
    names: set[str] = set()
    infos = list_eval_logs(log_dir, recursive=False)
    for info, found in zip(infos, read_headers([info.name for info in infos]), strict=True):
        name = base_name(info.name)
        names.add(name)
        if isinstance(found, EvalLog) and logged_unit(found):
            # Of those that began in the same second, the one that was written last is the newest.
            logs.append((found.eval.created, info.mtime, info.name, found))
        else:
            aliens.append(Alien(name, _what(info, found)))
    aliens += [Alien(name, "not a log") for name in _others(store, folder, names)]
    logs.sort(key=itemgetter(0, 1, 2), reverse=True)
    return Folder(tuple(log for *_, log in logs), tuple(sorted(aliens, key=lambda alien: alien.name)))


def _what(info: EvalLogInfo, found: EvalLog | Exception) -> str:
    """What a file is that is none of ours."""
    if not info.size:
        return "empty"
    if isinstance(found, Exception):
        return f"not a log that can be read ({first_line(found)})"
    return "a log of another program"


def first_line(error: Exception) -> str:
    """What an error says, in a line that is not long."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 120 else f"{text[:119]}…"


def _others(store: LogStore, folder: str, logs: set[str]) -> Iterator[str]:
    for path, _ in store.list(folder, recursive=False):
        name = base_name(path)
        if name not in logs and not name.startswith(".") and not _COMPANION.fullmatch(name):
            yield name


def base_name(path: str) -> str:
    """The name of a file without its folders, of a path or an URL."""
    return path.replace("\\", "/").rpartition("/")[2]
