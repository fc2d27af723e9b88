"""Where a log is, and what it is called."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import unquote, urlsplit

from proctor.contracts import LogStore, UsageError
from proctor.log._zip_read import BadLogError
from proctor.schema import EvalSpec

__all__ = ["contained_store", "join", "log_name", "store_for"]

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")
_LONGEST = 200  # bytes of a file name; file systems take 255, suffixes need room


def store_for(location: str) -> tuple[LogStore, str]:
    """The store of a location and its name there: plain paths and ``file://`` are files, other schemes plugins.

    Raises:
        UsageError: if no store is known for the scheme.
    """
    found = _SCHEME.match(location)
    scheme = found[1].lower() if found else "file"
    # These two are entry points, too, and listed with all others. They are not looked up there: that reads the metadata
    # of everything that is installed and imports pluggy, which is a tenth of the time of `proctor log list`, and a log
    # must be readable where plugins are broken.
    if scheme == "file":
        from proctor.log._file_store import FileStore

        path = unquote(urlsplit(location).path) if found else location
        return FileStore(), os.path.expanduser(path)
    if scheme == "memory":
        from proctor.log._memory_store import MemoryStore

        return MemoryStore(), location[len("memory://") :]
    from proctor import plugins

    store: LogStore = plugins.make("log_stores", plugins.get("log_stores", scheme))
    return store, location[len(scheme) + 3 :]


@contextmanager
def contained_store(location: str) -> Iterator[None]:
    """For a block that calls the store of ``location``: it can't end the program.

    Raises:
        UsageError: in the block, instead of ``SystemExit``; the message names the plugin.
    """
    try:
        yield
    except SystemExit as error:
        from proctor import plugins

        found = _SCHEME.match(location)
        with plugins.contained("log_stores", found[1].lower() if found else "file"):
            raise error


def check_free(location: str, otherwise: str = "name another place") -> None:
    """See that a new log can be written somewhere; ``otherwise`` is what to do instead of replacing what is there.

    Raises:
        UsageError: there is one already.
    """
    store, name = store_for(location)
    with suppress(FileNotFoundError, NotADirectoryError):  # whether it can be made is seen when that is tried
        store.stat(name)
        raise UsageError(f"{location} is there already: pass --overwrite to replace it, or {otherwise}.")


def missing_log(location: str) -> UsageError:
    """What to raise when there is no log at ``location``."""
    return UsageError(f"there is no log at {location}; `proctor log list` shows those there are.")


def not_a_log(location: str) -> BadLogError:
    """What to raise for a folder."""
    return BadLogError(f"{location} is a folder, not a log: `proctor log list {location}` shows the logs in it.")


def before_name(location: str, name: str) -> str:
    """What stands in an URL before the name that its store has for it; empty where the name is written differently."""
    return location[: len(location) - len(name)] if "://" in location and location.endswith(name) else ""


def join(folder: str, name: str) -> str:
    """The location of ``name`` in ``folder``."""
    return f"{folder.rstrip('/')}/{name}" if folder.rstrip("/") else f"{folder}{name}"


def log_name(spec: EvalSpec, format: str, copy: int = 1) -> str:
    """The file name of a log: ``<created>_<task>_<task id>.<format>``.

    ``PROCTOR_LOG_FILE_PATTERN`` changes what follows the time (fields ``{task}``, ``{id}``, ``{model}``). ``copy``
    above 1 is added when the name is taken.
    """
    pattern = os.environ.get("PROCTOR_LOG_FILE_PATTERN", "{task}_{id}")
    model = "" if spec.model in ("none", "none/none") else _clean(spec.model)
    task = _clean(spec.task.rpartition("/")[2])
    try:
        rest = pattern.format(task=task, id=_clean(spec.task_id), model=model)
    except (LookupError, ValueError) as error:
        raise UsageError(
            f"PROCTOR_LOG_FILE_PATTERN is {pattern!r}: use only the fields {{task}}, {{id}} and {{model}}."
        ) from error
    suffix = f"-{copy}" if copy > 1 else ""
    over = len(os.fsencode(rest)) - _LONGEST
    if over > 0:  # a long task name loses its end, the id never
        short = os.fsencode(task)[: max(8, len(os.fsencode(task)) - over)].decode("utf-8", "ignore")
        rest = pattern.format(task=short, id=_clean(spec.task_id), model=model[:50])
    return f"{_clean(spec.created)}_{rest}{suffix}.{format}"


def _clean(part: str) -> str:
    cleaned = re.sub(r"[_/:+\\\x00-\x1f]", "-", part)
    return cleaned.encode("utf-8", "backslashreplace").decode().replace("\\", "-")
