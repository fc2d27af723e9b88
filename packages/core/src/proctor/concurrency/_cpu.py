"""How many CPUs this evaluation may use, which is often fewer than the host has."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

__all__ = ["CpuBudget", "cpu_budget"]


@dataclass(frozen=True, slots=True)
class CpuBudget:
    """A number of CPUs (at least 1) and what set it."""

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
    best = CpuBudget(max(1, affinity), "affinity")
    for source, quota in _quotas(root):
        cpus = max(1, math.ceil(quota))
        if cpus < best.cpus:
            best = CpuBudget(cpus, source)
    return best


def _quotas(root: Path) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    mount = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            found += _walk(mount, path, _quota_v2)
        elif "cpu" in controllers.split(","):
            found += _walk(mount / controllers, path, _quota_v1) or _walk(mount / "cpu", path, _quota_v1)
    return found


def _walk(base: Path, path: str, read: Callable[[Path], float | None]) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    group = PurePosixPath(path.lstrip("/"))
    for level in [group, *group.parents]:
        quota = read(base / level)
        if quota is not None:
            found.append((f"cgroup /{'' if str(level) == '.' else level}", quota))
    return found


def _quota_v2(group: Path) -> float | None:
    quota, _, period = _read(group / "cpu.max").partition(" ")
    if not period or quota == "max":
        return None
    return int(quota) / int(period)


def _quota_v1(group: Path) -> float | None:
    quota, period = _read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")
    if not quota or not period or int(quota) <= 0:
        return None
    return int(quota) / int(period)


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
