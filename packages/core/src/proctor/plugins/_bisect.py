"""Which plugins slow every start: starts are measured with some plugins switched off, until those at fault are left."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.contracts import UsageError
from proctor.plugins._process import run_python

THRESHOLD = 0.05  # seconds above a start without plugins
_TRIES = 3  # a busy machine can make any start slow once
_START = """
import sys, time
began = time.perf_counter()
from proctor import plugins
plugins.configure()
plugins.startup()
seconds = time.perf_counter() - began
sys.__stdout__.write(f"\\n@@proctor-start {seconds}\\n")
"""


@dataclass(frozen=True, slots=True)
class Slow:
    """What adds to every start.

    Args:
        distributions: one, or several that are slow only together.
        seconds: what they add.
    """

    distributions: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class StartUp:
    """What plugins cost before the first task file is read.

    Args:
        seconds: of a start with all plugins.
        without: of a start with the core alone.
        slow: what is at fault, the slowest first; empty when all plugins together add less than 50 ms.
    """

    seconds: float
    without: float
    slow: tuple[Slow, ...] = ()


def bisect(distributions: Sequence[str], disabled: Sequence[str] = ()) -> StartUp:
    """Measure starts, each in a process of its own, in which startup hooks run as they do in every run.

    Args:
        distributions: those that may be at fault.
        disabled: what stays switched off, as for ``--disable-plugin``.

    Raises:
        UsageError: if a start ends the process or does not end.
    """

    def seconds(chosen: Sequence[str]) -> float:
        off = [*disabled, *(name for name in distributions if name not in chosen)]
        return min(_start(off) for _ in range(_TRIES))

    without, whole = seconds(()), seconds(distributions)
    found = culprits(distributions, lambda chosen: seconds(chosen) - without, whole - without)
    return StartUp(whole, without, tuple(sorted(found, key=lambda slow: -slow.seconds)))


def culprits(
    distributions: Sequence[str], cost: Callable[[Sequence[str]], float], known: float | None = None
) -> list[Slow]:
    """Those of ``distributions`` that cost more than the threshold, by halves.

    Args:
        distributions: to be looked at.
        cost: seconds that some of them add together.
        known: what all of them cost, when it has been measured.
    """
    seconds = cost(distributions) if known is None else known
    if not distributions or seconds < THRESHOLD:
        return []
    if len(distributions) == 1:
        return [Slow(tuple(distributions), seconds)]
    half = len(distributions) // 2
    found = culprits(distributions[:half], cost) + culprits(distributions[half:], cost)
    return found or [Slow(tuple(distributions), seconds)]


def _start(off: Sequence[str]) -> float:
    try:
        done = run_python(["-c", _START], "", {"PROCTOR_DISABLE_PLUGINS": ",".join(off)})
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"A start did not end within {error.timeout:.0f} s: `proctor plugins doctor` says more."
        ) from None
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("@@proctor-start "):
            return float(line.split()[1])
    raise UsageError(f"A start ended with exit code {done.returncode}: `proctor plugins doctor` says more.")
