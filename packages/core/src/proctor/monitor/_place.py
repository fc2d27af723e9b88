"""Where a thread is, as a person would say it: the line of the task's own code, not of the libraries beneath it."""

from __future__ import annotations

import linecache
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import FrameType

from proctor.schema import redact_text

__all__ = ["Place", "awaiting_place", "blocking_place"]

_LOOPS = ("anyio", "asyncio", "trio", "uvloop", "outcome", "sniffio")
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LONGEST = 80  # characters of a line of code


@dataclass(frozen=True, slots=True)
class Place:
    """A line of code.

    Attributes:
        file: its path.
        line: its number.
        function: what it is in.
        code: its text, without what looks like a secret.
    """

    file: str
    line: int
    function: str
    code: str = ""

    @property
    def where(self) -> str:
        """``my_task.py:17 solve()``, with the path as seen from the working directory where it is below that."""
        file = os.path.relpath(self.file) if os.path.isabs(self.file) and _below(self.file) else self.file
        return f"{file}:{self.line} {self.function}()"

    def __str__(self) -> str:
        return f"{self.where}: {self.code}" if self.code else self.where


def blocking_place(frame: FrameType) -> Place:
    """The innermost line of the task's own code; else of an installed package, else of anything.

    Args:
        frame: the innermost frame of a thread.
    """
    installed: Place | None = None
    for each in _outwards(frame):
        rank = _rank(each.f_code.co_filename)
        if rank == 0:
            return _place(each)
        if rank == 1 and installed is None:
            installed = _place(each)
    return installed or _place(frame)


def awaiting_place(coroutine: object) -> Place | None:
    """The innermost line of the task's own code in which a coroutine waits; None when it runs, or waits elsewhere.

    It does not see into other tasks, such as those of a task group.
    """
    found: FrameType | None = None
    now: object = coroutine
    while now is not None:
        frame = getattr(now, "cr_frame", None) or getattr(now, "gi_frame", None) or getattr(now, "ag_frame", None)
        if isinstance(frame, FrameType) and _rank(frame.f_code.co_filename) == 0:
            found = frame
        now = getattr(now, "cr_await", None) or getattr(now, "gi_yieldfrom", None) or getattr(now, "ag_await", None)
    return None if found is None else _place(found)


def _outwards(frame: FrameType) -> Iterator[FrameType]:
    now: FrameType | None = frame
    while now is not None:
        yield now
        now = now.f_back


def _place(frame: FrameType) -> Place:
    code = frame.f_code
    text = linecache.getline(code.co_filename, frame.f_lineno).strip()
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return Place(code.co_filename, frame.f_lineno, code.co_name, redact_text(text))


@cache
def _rank(file: str) -> int:
    """0 for a task's own code, 1 for what is installed, 2 for Python, the loops and the core."""
    if file.startswith((_OWN, "<frozen")):
        return 2
    for mark in _INSTALLED:
        if mark in file:
            package = file.rpartition(mark)[2].partition(os.sep)[0]
            return 2 if package in _LOOPS else 1
    paths = {sysconfig.get_paths().get(name) for name in ("stdlib", "platstdlib")}
    return 2 if any(path and file.startswith(path + os.sep) for path in paths) else 0


def _below(file: str) -> bool:
    try:
        return file.startswith(os.getcwd() + os.sep)
    except OSError:  # the working directory is gone
        return False
