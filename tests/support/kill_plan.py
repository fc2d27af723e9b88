"""What a seed means: which run is killed, at which moment, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

__all__ = ["KINDS", "Moment", "Plan", "plan_of"]

KINDS = ("write", "told", "request", "synced", "write", "header", "written", "request", "write", "created")
"""The kinds of moments, in turn: inside of a write (in the first ones, in any, in the last), between a write and its
sync or its acknowledgement, after an acknowledgement, as a request comes in, and when the log is just made."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When a process is killed: at the ``count``-th thing of a kind, ``share`` of which is done before."""

    kind: str
    count: int = 1
    share: float = 0.0

    def __str__(self) -> str:
        part = f" at {self.share:.2f}" if self.kind in ("write", "header", "replace") else ""
        return f"{self.kind} {self.count}{part}" if self.kind != "header" else f"header{part}"


@dataclass(frozen=True, slots=True)
class Plan:
    """One evaluation that is killed once, or again while it is resumed."""

    seed: int
    format: str
    backend: str
    buffer: int
    moments: tuple[Moment, ...]
    samples: int = 60
    epochs: int = 2

    @property
    def total(self) -> int:
        """Samples times epochs."""
        return self.samples * self.epochs

    def __str__(self) -> str:
        return f"{self.seed:3} {self.format:4} {self.backend:7} {', then '.join(map(str, self.moments))}"


def plan_of(seed: int) -> Plan:
    """The plan of a seed; two of five are killed a second time, in the resume (one of them a third time)."""
    random = Random(seed)
    format = "json" if seed % 4 == 3 else "eval"
    plan = Plan(seed, format, random.choice(["asyncio", "trio"]), random.choice([1, 1, 1, 10]), ())
    kinds = [KINDS[seed % len(KINDS)]]
    if seed % 5 in (1, 3):
        kinds.append(random.choice(["write", "write", "told", "request", "header", "written", "created"]))
    if seed % 10 == 1:
        kinds.append(random.choice(["write", "told", "request"]))
    left = plan.total
    moments = []
    for kind in kinds:
        moment, left = _moment(kind, left, random)
        moments.append(moment)
    return Plan(seed, format, plan.backend, plan.buffer, tuple(moments))


def _moment(kind: str, left: int, random: Random) -> tuple[Moment, int]:
    """A moment of a run that has ``left`` samples to do, and about how many are left after it."""
    if kind in ("told", "request"):
        count = random.randint(1, max(1, left - 10))
        return Moment(kind, count), left - count
    share = random.choice([0.0, random.random(), random.random(), 1.0])
    return Moment(kind, 1 if kind == "created" else random.randint(1, 5), share), left - 10
