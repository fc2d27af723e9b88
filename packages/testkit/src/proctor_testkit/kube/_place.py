"""Where a fake Kubernetes keeps its files, and what it owns: by that, the next one knows what a killed one left."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from proctor.concurrency import process_environment

__all__ = ["MARK", "Place", "end_marked", "is_left"]

MARK = "PROCTOR_FAKE_KUBERNETES"
"""The variable in the environment of every process that is a part of a pod."""

_PATIENCE, _PAUSE = 5.0, 0.005  # seconds
_numbers = itertools.count()


class Place:
    """A folder below that of this user's fakes, named after the fake.

    Attributes:
        name: no other fake of this machine has it, nor had it.
    """

    def __init__(self) -> None:
        self.name = f"{_process(os.getpid()) or os.getpid()}.{next(_numbers)}"
        self._home = Path(tempfile.gettempdir()) / f"proctor-fake-kubernetes-{os.getuid()}"
        self.folder = self._home / self.name

    def open(self) -> None:
        """Make the folder; take away those that killed fakes left, with their processes."""
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        left = [one for one in self._home.iterdir() if is_left(one.name)]
        if left:
            end_marked({f"{one.name}/" for one in left})
        for one in left:
            shutil.rmtree(one, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def close(self) -> None:
        """End all processes that have the mark of this fake, and take the folder away."""
        end_marked({f"{self.name}/"})
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another fake has its folder there
            self._home.rmdir()


def is_left(name: str) -> bool:
    """Whether what has the name of a fake belongs to none that lives."""
    process, _, _ = name.rpartition(".")
    number = process.partition("-")[0]
    return not number.isdigit() or _process(int(number)) != process


def _process(pid: int) -> str:
    """A name for a process that no other process of this machine has, nor had; "" if there is none of this number."""
    try:
        began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return f"{pid}-{began}-{boot[:8]}"


def end_marked(marks: set[str]) -> None:
    """End every process whose environment has one of the marks, in whatever process group it is by now."""
    wanted = tuple(f"{MARK}={mark}".encode() for mark in marks)
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:  # what was not yet killed may have made another
        found = False
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if any(word.startswith(wanted) for word in process_environment(int(entry.name), until).split(b"\0")):
                    os.kill(int(entry.name), signal.SIGKILL)
                    found = True
        if not found:
            return
        time.sleep(_PAUSE)
