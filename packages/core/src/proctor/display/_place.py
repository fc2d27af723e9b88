"""An error on a screen: which line of the task's own code it came from, and what it says."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import sysconfig
from functools import cache

from proctor.schema import EvalError

__all__ = ["error_place", "error_sentence", "error_text"]

_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_INSTALLED = ("site-packages", "dist-packages")
# The core's errors that are written for a person to read: whatever the class, the sentence has it all.
_FOR_PEOPLE = "UsageError|PrerequisiteError|LogBusyError|BadLogError|BrokenComponent"
_WRITTEN = re.compile(rf"(?:{_FOR_PEOPLE})\((['\"].*)\)", re.DOTALL)
_LONGEST = 300  # characters of an error on a screen


def error_text(error: EvalError, folder: str | None = None) -> str:
    """``quiz.py:12: ValueError('no answer')`` on one line; the place comes first, so that cutting it off keeps it."""
    message = error_sentence(error.message)
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]}…"
    place = error_place(error, folder)
    return f"{place}: {message}" if place else message


def error_sentence(message: str) -> str:
    """A log's ``ValueError('no answer')`` on one line; of an error for people to read, the text only."""
    if written := _WRITTEN.fullmatch(message):
        with contextlib.suppress(ValueError, SyntaxError):  # another program's log
            message = str(ast.literal_eval(written[1]))
    return " ".join(message.split())


def error_place(error: EvalError, folder: str | None = None) -> str:
    """``file:line`` of the last frame in the task's files, else in code that is not installed; empty when none is.

    Args:
        error: with its traceback.
        folder: the absolute path of the folder of the task's file, where it is known.
    """
    frames = [(path, line) for path, line in _FRAME.findall(error.traceback) if not path.startswith("<")]
    own = [frame for frame in frames if folder and _within(frame[0], folder)]
    if not (folder and _library(folder)):  # a virtual environment may stand in the task's folder
        own = [frame for frame in own if not _library(frame[0])]
    found = own or [frame for frame in frames if not _library(frame[0])]
    return f"{_shown(found[-1][0])}:{found[-1][1]}" if found else ""


def _library(path: str) -> bool:
    folders = path.replace("\\", "/").split("/")
    return any(name in folders for name in _INSTALLED) or any(_within(path, root) for root in _library_folders())


@cache
def _library_folders() -> tuple[str, ...]:
    """Python's own library, and this package."""
    import proctor

    places = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.dirname(os.__file__)}
    return (*places, os.path.dirname(proctor.__file__))


def _within(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/\\") + os.sep)


def _shown(path: str) -> str:
    """``path`` as seen from here, or its last two parts where it lies elsewhere."""
    here = os.getcwd()
    return (
        os.path.relpath(path, here) if _within(path, here) else os.path.join(*path.replace("\\", "/").split("/")[-2:])
    )
