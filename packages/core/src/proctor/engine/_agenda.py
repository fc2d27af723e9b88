"""What a run does with the units that were planned: which need not run, and how often one that failed is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from proctor.engine._unit import Unit
from proctor.log import LogIndex
from proctor.schema import EvalLog

__all__ = ["Agenda", "MakeAgenda", "Retries"]

_DOUBLINGS = 1_000  # a float ends at 1,024


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a unit that failed is run again, and after how long.

    Args:
        attempts: after the first one.
        wait: seconds before the first of them; doubled each time.
        longest: seconds that a wait takes at most.
    """

    attempts: int = 0
    wait: float = 0.0
    longest: float = 600.0

    def rest(self, failed: int) -> float | None:
        """Seconds to wait after ``failed`` attempts that failed; ``None`` when there are enough of them."""
        if failed > self.attempts:
            return None
        return min(self.longest, self.wait * 2.0 ** min(failed - 1, _DOUBLINGS))


@dataclass(frozen=True, slots=True)
class Agenda:
    """What a run does.

    Args:
        complete: headers of logs that stand for units, by unit id; these units are not run.
        retries: what becomes of a unit that failed.
        task_ids: what the attempts at a unit are known by, by unit id; made up where there is none.
        eval_set_id: the set that the logs belong to.
        prior: what earlier logs of a unit have, by unit id, oldest first; samples that are done in them are not run.
    """

    complete: Mapping[str, EvalLog] = field(default_factory=dict)
    retries: Retries = Retries()
    task_ids: Mapping[str, str] = field(default_factory=dict)
    eval_set_id: str | None = None
    prior: Mapping[str, Sequence[LogIndex]] = field(default_factory=dict)


MakeAgenda: TypeAlias = Callable[[Sequence[Unit]], Agenda]
"""Called on a thread with what was planned, before anything is sent; a ``UsageError`` ends the run there."""
