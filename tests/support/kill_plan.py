"""What a seed means: which run is killed, at which moment, and how often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

__all__ = ["Moment", "Plan", "plan_of"]

KINDS = ("write", "told", "request", "synced", "write", "header", "written", "request", "write", "created")
"""The kinds of moments, in turn: inside of a write (of the first ones, of the last), between a write and its sync or
its acknowledgement, after an acknowledgement, as a request comes in, and when the log is just made."""

REMOTE = ("put", "told", "put", "request")
"""Those in an object store: at a write to it, which comes to pass or does not."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When a process is killed: at the ``count``-th thing of a kind, ``share`` of which is done before."""

    kind: str
    count: int = 1
    share: float = 0.0

    def __str__(self) -> str:
        count = "" if self.kind in ("header", "created") else f" {self.count}"
        return f"{self.kind}{count}" + (f" at {self.share:.2f}" if self.kind in ("write", "header", "put") else "")


@dataclass(frozen=True, slots=True)
class Plan:
    """One evaluation that is killed once, or again while it is resumed."""

    seed: int
    format: str
    backend: str
    buffer: int
    moments: tuple[Moment, ...]
    set: bool = False
    """Two tasks by ``proctor eval-set``, each of half as many samples."""
    samples: int = 60
    epochs: int = 2

    @property
    def total(self) -> int:
        """Samples of all tasks, times epochs."""
        return self.samples * self.epochs

    @property
    def clean(self) -> bool:
        """Whether a set deletes the logs of earlier attempts at its end."""
        return self.set and self.seed % 2 == 0

    def __str__(self) -> str:
        command = f"set{' --clean' if self.clean else ''}" if self.set else "eval"
        moments = ", then ".join(map(str, self.moments))
        return f"{self.seed:3} {command:11} {self.format:4} {self.backend:7} {moments}"


def plan_of(seed: int, *, remote: bool = False) -> Plan:
    """The plan of a seed: every other one is killed again in its resume, some a third time; one of three is a set.

    Args:
        seed: any number.
        remote: whether the logs are in an object store.
    """
    random = Random(seed)
    kinds = REMOTE if remote else KINDS
    format, backend = "json" if seed % 4 == 3 else "eval", random.choice(["asyncio", "trio"])
    buffer = random.choice([1, 1, 1, 10])
    times = 1 + seed % 2 + (seed % 10 == 1)
    chosen = [kinds[seed % len(kinds)], *random.choices(kinds, k=times - 1)]
    plan = Plan(seed, format, backend, buffer, (), set=seed % 3 == 2)
    left, moments = plan.total, []
    for kind in chosen:
        moments.append(_moment(kind, left, random))
        left -= moments[-1].count if kind in ("told", "request") else 10
    return replace(plan, moments=tuple(moments))


def _moment(kind: str, left: int, random: Random) -> Moment:
    """A moment of a run that has about ``left`` samples to do."""
    if kind in ("told", "request"):
        return Moment(kind, random.randint(1, max(1, left - 20)))
    share = random.choice([0.0, random.random(), random.random(), 1.0])
    return Moment(kind, 1 if kind == "created" else random.randint(1, 9 if kind == "put" else 5), share)
