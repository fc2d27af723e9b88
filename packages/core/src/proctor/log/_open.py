"""Opening a log: what its bytes are decides the format, not its name."""

from __future__ import annotations

import re
from typing import Literal

from proctor.contracts import Stat
from proctor.log._eval_file import EvalFile
from proctor.log._json_file import JsonFile
from proctor.log._location import not_a_log, store_for
from proctor.log._log_file import LogFile
from proctor.log._steady import steadily
from proctor.log._zip_format import LOCAL_MAGIC
from proctor.log._zip_read import BadLogError
from proctor.schema import EvalLog

__all__ = ["open_log", "read_header"]

_EMPTY_ZIP = b"PK\x05\x06"


def open_log(location: str, format: Literal["auto", "eval", "json"] = "auto", *, whole: bool = False) -> LogFile:
    """The log at ``location``; ``whole`` says that all of it will be read.

    Raises:
        FileNotFoundError: there is nothing.
        BadLogError: what is there is not a log.
    """
    store, name = store_for(location)

    def kind(stat: Stat) -> tuple[str, Stat]:
        start = store.read(name, 0, 64)
        return (_kind(start) if format == "auto" else format), stat

    try:
        found, stat = steadily(store, name, store.stat(name), kind)
        if found == "eval":
            return EvalFile(location, store, name, stat, whole=whole)
        return JsonFile(location, store, name, stat)
    except IsADirectoryError as error:
        raise not_a_log(location) from error
    except BadLogError as error:
        raise BadLogError(f"{location} is not an evaluation log: {error}") from error


def _kind(start: bytes) -> Literal["eval", "json"]:
    """The format of a log that begins with these bytes."""
    if start[:4] in (LOCAL_MAGIC, _EMPTY_ZIP):
        return "eval"
    if re.match(rb"\s*\{", start):
        return "json"
    what = f"its first bytes are {start[:8]!r}" if start else "empty"
    raise BadLogError(f"neither a ZIP archive nor a JSON object ({what})")


def read_header(location: str) -> EvalLog | Exception:
    """The header of the log at ``location``, without reduced scores, or why it has none: any bytes may be there."""
    try:
        return open_log(location).header(reductions=False)
    except Exception as error:
        return error
