"""How many CPUs this evaluation may use, which is often fewer than the host has."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

__all__ = ["CpuBudget", "cpu_budget"]


@dataclass(frozen=True, slots=True)
class CpuBudget:
    """A number of CPUs (at least 1) and what set it: ``affinity`` or a cgroup's path as this process sees it."""

    cpus: int
    source: str


@functools.cache
def cpu_budget() -> CpuBudget:
    """The smallest of the affinity mask and every CPU quota from this process's cgroup up to the root, rounded up."""
    return read_budget(Path("/"), _affinity())


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_budget(root: Path, affinity: int) -> CpuBudget:
    """The budget as the trees under ``root`` (``proc`` and ``sys/fs/cgroup``) give it."""
    least, source = float(max(1, affinity)), "affinity"
    for place, quota in _quotas(root):
        if quota < least:
            least, source = quota, place
    return CpuBudget(max(1, math.ceil(least)), source)


@dataclass(frozen=True, slots=True)
class _Mount:
    """Where a cgroup hierarchy is seen, and which of its groups is seen there (not always the top: containers)."""

    controllers: frozenset[str]  # none for version 2
    group: str
    point: str


def _quotas(root: Path) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    mounts = _mounts(root)
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names == "":
            seen = [mount for mount in mounts if not mount.controllers]
            for mount in seen or _usual("", "unified"):
                found += _walk(root, mount, path, _quota_v2)
        elif "cpu" in names.split(","):
            seen = [mount for mount in mounts if "cpu" in mount.controllers]
            for mount in seen or _usual(names, "cpu"):
                found += _walk(root, mount, path, _quota_v1)
    return found


def _mounts(root: Path) -> list[_Mount]:
    """The cgroup mounts in ``/proc/self/mountinfo`` (proc_pid_mountinfo(5))."""
    found: list[_Mount] = []
    for line in _read(root / "proc/self/mountinfo").splitlines():
        first, _, second = line.partition(" - ")
        left, right = first.split(" "), second.split(" ")
        if len(left) < 6 or len(right) < 3 or right[0] not in ("cgroup", "cgroup2"):
            continue
        controllers = right[2].split(",") if right[0] == "cgroup" else ()
        found.append(_Mount(frozenset(controllers), _unescaped(left[3]), _unescaped(left[4])))
    return found


def _usual(*names: str) -> list[_Mount]:
    """Where the hierarchies are by convention, for a ``mountinfo`` that can't be read."""
    return [_Mount(frozenset(), "/", f"/sys/fs/cgroup/{name}") for name in dict.fromkeys(names)]


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _walk(root: Path, mount: _Mount, path: str, read: Callable[[Path], float | None]) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    group = PurePosixPath(path)
    # A path that is not under the group mounted here belongs to another namespace; only the mounted group is seen.
    hidden = ".." in group.parts or not group.is_relative_to(mount.group)
    level = PurePosixPath() if hidden else group.relative_to(mount.group)
    base = root / mount.point.lstrip("/")
    for step in [level, *level.parents]:
        quota = read(base / step)
        if quota is not None:
            found.append((f"cgroup /{'' if str(step) == '.' else step}", quota))
    return found


def _quota_v2(group: Path) -> float | None:
    """CPUs by ``cpu.max``, "quota period" in microseconds or "max period"."""
    return _ratio(*_read(group / "cpu.max").partition(" ")[::2])


def _quota_v1(group: Path) -> float | None:
    """CPUs by the two files of version 1, in microseconds; a quota of -1 is none."""
    return _ratio(_read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    if not (quota.isdecimal() and period.isdecimal()):
        return None
    return int(quota) / int(period) if int(quota) and int(period) else None


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""
