"""Whose a sandbox is: what is written on it when it is made, and read by whoever looks for those of dead runs."""

from __future__ import annotations

import functools
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.contracts._sandbox import SandboxConnection

__all__ = ["RunningSandbox", "SandboxOwner"]

_PREFIX = "proctor."
_PATIENCE = 5.0  # seconds that `ps` may take


@dataclass(frozen=True, slots=True)
class SandboxOwner:
    """The run, the process and the sample that a sandbox was made for.

    A driver gets it from :func:`proctor.sandbox.sandbox_owner` and writes its labels on all that it makes.

    Args:
        run_id: of the run.
        host: the machine and the set of process ids (a container has its own) that ``pid`` is of; opaque.
        pid: the process.
        started: when the process was started; opaque. It tells the process from a later one with the same number.
        task: name of the task; empty for what no task asked for.
        sample: id of the sample; empty for what several samples share.
        epoch: of the sample, from 1 on; 0 without a sample.
        keep: the person who started the run wants to look into it afterwards (``--no-sandbox-cleanup``).

    Example:
        >>> from proctor.contracts import SandboxOwner
        >>> owner = SandboxOwner.of_this_process("run7", task="quiz", sample="s1", epoch=2)
        >>> owner.alive()
        True
    """

    run_id: str
    host: str
    pid: int
    started: str
    task: str = ""
    sample: str = ""
    epoch: int = 0
    keep: bool = False

    @classmethod
    def of_this_process(
        cls, run_id: str, *, task: str = "", sample: str = "", epoch: int = 0, keep: bool = False
    ) -> SandboxOwner:
        """An owner in this process; drivers ask :func:`proctor.sandbox.sandbox_owner`, which knows run and sample.

        Args:
            run_id: of the run.
            task: name of the task.
            sample: id of the sample.
            epoch: of the sample.
            keep: it is to stay when the run is over.

        Example:
            >>> SandboxOwner.of_this_process("run7").sample
            ''
        """
        pid = os.getpid()
        return cls(run_id, _host(), pid, _started(pid) or "", task, sample, epoch, keep)

    def labels(self) -> dict[str, str]:
        """The owner as labels; ``task`` and ``sample`` may be any text (Kubernetes has it as annotations).

        Example:
            >>> label = owner.labels()
            >>> sorted(label)
            ['proctor.epoch', 'proctor.host', 'proctor.pid', 'proctor.run', 'proctor.sample', 'proctor.started', 'proctor.task']
            >>> label["proctor.run"], label["proctor.epoch"]
            ('run7', '2')
        """  # noqa: E501  # the output of the example is one line
        return {
            f"{_PREFIX}run": self.run_id,
            f"{_PREFIX}host": self.host,
            f"{_PREFIX}pid": str(self.pid),
            f"{_PREFIX}started": self.started,
            f"{_PREFIX}task": self.task,
            f"{_PREFIX}sample": self.sample,
            f"{_PREFIX}epoch": str(self.epoch),
            **({f"{_PREFIX}keep": "yes"} if self.keep else {}),
        }

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> SandboxOwner | None:
        """The owner whose ``labels()`` are among ``labels``; ``None`` when they are not, or make no sense.

        Args:
            labels: of something that a provider found; others may be among them.

        Example:
            >>> SandboxOwner.from_labels({**owner.labels(), "maintainer": "somebody"}) == owner
            True
            >>> SandboxOwner.from_labels({"maintainer": "somebody"}) is None
            True
        """
        known = {name.removeprefix(_PREFIX): value for name, value in labels.items() if name.startswith(_PREFIX)}
        run_id, host, pid, epoch = (known.get(name, "") for name in ("run", "host", "pid", "epoch"))
        if not (run_id and host and _is_number(pid) and int(pid) > 0):
            return None
        return cls(
            run_id=run_id,
            host=host,
            pid=int(pid),
            started=known.get("started", ""),
            task=known.get("task", ""),
            sample=known.get("sample", ""),
            epoch=int(epoch) if _is_number(epoch) else 0,
            keep=bool(known.get("keep")),
        )

    def alive(self) -> bool | None:
        """Whether the process goes on; ``None`` when that can't be known here, as on another host.

        Blocks for a moment: on platforms without ``/proc`` it runs ``ps``.

        Example:
            >>> from dataclasses import replace
            >>> replace(owner, started="before the last restart").alive()
            False
            >>> replace(owner, host="elsewhere").alive() is None
            True
        """
        if self.host != _host():
            return None
        now = _started(self.pid)
        if now is None:
            return None if _exists(self.pid) else False
        return now == self.started if self.started else None


@dataclass(frozen=True, slots=True)
class RunningSandbox:
    """Something that a provider has made for a run and that is still there: it is taken away as a whole.

    Args:
        id: what :meth:`SandboxDriver.remove` takes, and what a person types.
        owner: whose it is; ``None`` when its labels don't say.
        state: what the provider says of it, such as ``running`` or ``exited (137)``.
        created: when it was made, with a time zone; ``None`` when the provider does not say.
        connection: how a person gets in; ``None`` when nobody can (it is not running, or it is a network).

    Example:
        >>> from proctor.contracts import RunningSandbox
        >>> left = RunningSandbox("box7", owner, "running", None, SandboxConnection("toy", "toy enter box7"))
        >>> left.connection.command
        'toy enter box7'
    """

    id: str
    owner: SandboxOwner | None
    state: str
    created: datetime | None
    connection: SandboxConnection | None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 12


@functools.cache
def _host() -> str:
    """This machine and its set of process ids: of one name there may be several, containers among them."""
    name = socket.gethostname()
    machine = _read("/etc/machine-id") or _read("/var/lib/dbus/machine-id")
    try:
        ids = os.readlink("/proc/self/ns/pid")
    except OSError:
        ids = ""
    mark = blake2b("\0".join((name, machine, ids)).encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    short = "".join(char if char.isascii() and (char.isalnum() or char in "-.") else "-" for char in name)
    return f"{short[:50].strip('-.')}-{mark}".lstrip("-")


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When the process was started, as text that no other process with this number has; ``None`` if it is not there."""
    if not os.path.isdir("/proc/self"):
        return _started_by_ps(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # proc(5): the name in parentheses may have any character; the state follows it, the start 19 fields later.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):  # dead, and not yet asked for by its parent
        return None
    return f"{_boot()[:8]}-{fields[19].decode()}"


@functools.cache
def _boot() -> str:
    return _read("/proc/sys/kernel/random/boot_id")


def _started_by_ps(pid: int) -> str | None:
    if sys.platform == "win32":
        return None
    try:
        told = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return "-".join(told.stdout.replace(":", ".").split()) or None


def _exists(pid: int) -> bool:
    """Whether there is such a process, perhaps of another user whose files are hidden; a dead one does not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return not _dead(pid)


def _dead(pid: int) -> bool:
    stat = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(stat) and stat[0] in "ZX"
