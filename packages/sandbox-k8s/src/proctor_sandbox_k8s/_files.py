"""Files of a container, by commands that read and write them; in worker threads.

Either may be done twice without harm, so a stream that was cut is no error until it was cut three times.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from proctor.contracts import OutputLimitExceededError, SandboxBrokenError
from proctor_sandbox_k8s._command import LIMIT, Result, Target, run
from proctor_sandbox_k8s._script import READ, WRITE, Command
from proctor_sandbox_k8s._wake import Stop

__all__ = ["MAX_FILE", "read_file", "write_file"]

MAX_FILE = 100 * 1024**2
"""Bytes of a file that are taken in."""

_ATTEMPTS = 3
_MISSING, _DIRECTORY, _DENIED, _LARGE, _FAILED = 41, 42, 43, 44, 45
# What commands say in the plain locale, whatever shell or library they are of.
_SAID: tuple[tuple[str, type[OSError], int], ...] = (
    ("permission denied", PermissionError, errno.EACCES),
    ("read-only file system", PermissionError, errno.EROFS),
    ("operation not permitted", PermissionError, errno.EPERM),
    ("is a directory", IsADirectoryError, errno.EISDIR),
    ("not a directory", NotADirectoryError, errno.ENOTDIR),
    ("file exists", NotADirectoryError, errno.ENOTDIR),
    ("no space left", OSError, errno.ENOSPC),
    ("disk quota exceeded", OSError, errno.EDQUOT),
    ("file name too long", OSError, errno.ENAMETOOLONG),
    ("no such file", FileNotFoundError, errno.ENOENT),
)


def read_file(target: Target, path: str, stop: Stop) -> bytes:
    """What is in the file at an absolute path.

    Raises:
        OSError: as the contract of sandboxes says.
        OutputLimitExceededError: it is larger than 100 MiB.
        SandboxBrokenError: not the file is at fault.
    """
    words = ["sh", "-c", READ, "sh", path, str(MAX_FILE)]
    try:
        done = _again(target, lambda: run(target, _command(words), stop, limit=MAX_FILE))
    except OutputLimitExceededError:
        raise OutputLimitExceededError("100 MiB", None) from None
    _check(done, path)
    return done.stdout


def write_file(target: Target, path: str, data: bytes, stop: Stop) -> None:
    """Write a file at an absolute path; its directories are made, and its mode stays.

    Raises:
        OSError: as the contract of sandboxes says.
        SandboxBrokenError: not the file is at fault.
    """
    command = _command(["sh", "-c", WRITE, "sh", path], data)
    _check(_again(target, lambda: run(target, command, stop, limit=LIMIT)), path)


def _command(words: list[str], data: bytes = b"") -> Command:
    return Command(words, input=data, env={"LC_ALL": "C"})


def _again(target: Target, attempt: Callable[[], Result]) -> Result:
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except SandboxBrokenError:
            if target.watched.problem() is not None:
                raise
    return attempt()


def _check(done: Result, path: str) -> None:
    code, said = done.outcome.code, done.stderr.decode("utf-8", "replace").strip()
    if code == 0:
        return
    if code == _MISSING:
        raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
    if code == _DIRECTORY:
        raise IsADirectoryError(errno.EISDIR, "it is a directory", path)
    if code == _DENIED:
        raise PermissionError(errno.EACCES, "it may not be read or written", path)
    if code == _LARGE:
        raise OutputLimitExceededError("100 MiB", None)
    for words, kind, number in _SAID:
        if words in said.lower():
            raise kind(number, said, path)
    raise OSError(errno.EIO, said or f"the command that reads or writes it ended with {code}", path)
