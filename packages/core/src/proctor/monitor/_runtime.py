"""The folder for what processes of one user tell each other while they run."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from proctor.contracts import UsageError

__all__ = ["runtime_dir"]


def runtime_dir() -> Path:
    """A folder that only this user can enter, made when it is not there; it does not outlive the machine's session.

    ``$XDG_RUNTIME_DIR/proctor`` where that is set (XDG Base Directory Specification), else ``proctor-UID`` in the
    folder for temporary files.

    Raises:
        UsageError: it can't be made, or somebody else made it.
    """
    session = os.environ.get("XDG_RUNTIME_DIR")
    if session and os.path.isdir(session) and os.access(session, os.W_OK):
        folder = Path(session, "proctor")
    else:
        user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
        folder = Path(tempfile.gettempdir(), f"proctor-{user}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()  # in a folder that all can write to, another user may have been there first
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be made ({error.strerror}): set XDG_RUNTIME_DIR to a folder of yours"
        ) from error
    foreign = hasattr(os, "getuid") and found.st_uid != os.getuid()
    if foreign or not stat.S_ISDIR(found.st_mode) or (os.name == "posix" and found.st_mode & 0o077):
        raise UsageError(
            f"{folder} is not a folder that only you can enter, so nothing is shared through it: "
            "remove it, or set XDG_RUNTIME_DIR to a folder of yours"
        )
    return folder
