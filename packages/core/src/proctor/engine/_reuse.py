"""What earlier logs have of a unit: samples that are done go into the new log as they are, the others are run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from proctor.dataset import IterableDataset
from proctor.engine._unit import Unit
from proctor.log import LogIndex, Reused
from proctor.schema import EvalRetryError

__all__ = ["ResumePlan", "Reuse", "Why", "resume_plan"]

Why: TypeAlias = Literal["never run", "error", "cancelled", "invalidated", "changed"]
"""Why a sample is run: it never was, or what became of it."""

_FIRST = 10  # ids that are named
_UNKNOWN = 0  # no log is its owner: the sample is run


@dataclass(slots=True)
class ResumePlan:
    """What a resume of a unit does.

    Args:
        logs: the earlier logs, oldest first.
        reused: how many samples are done and kept.
        why: how many are run, by reason.
        first: the first ids of each reason, with the epoch where there are several.
        total: samples times epochs; ``None`` when that is not known before they are read.
    """

    logs: list[str]
    reused: int = 0
    why: Counter[Why] = field(default_factory=Counter)
    first: dict[Why, list[int | str]] = field(default_factory=dict)
    total: int | None = None

    @property
    def to_run(self) -> int:
        """How many samples are run."""
        return sum(self.why.values())

    def note(self, why: Why, id: int | str, epoch: int | None) -> None:
        """Count a sample that is run; ``epoch`` when there are several."""
        self.why[why] += 1
        named = self.first.setdefault(why, [])
        if len(named) < _FIRST:
            named.append(id if epoch is None else f"{id} (epoch {epoch})")


class Reuse:
    """The samples of a unit that are done in earlier logs. Made on a thread: it looks at every id.

    Args:
        unit: the unit.
        prior: its earlier logs, oldest first; the sample is taken from the newest that has it done.
        why: what is said of samples that no log has.
    """

    def __init__(self, unit: Unit, prior: Sequence[LogIndex], why: Why = "never run") -> None:
        if len(prior) > 254:
            prior = prior[-254:]
        self._logs = list(prior)
        # A sample that somebody invalidated stands in later attempts and in copies of its log, too.
        if invalidated := set().union(*(index.invalidated for index in prior)):
            for index in prior:
                index.invalidate(invalidated)
        self._epochs = unit.epochs
        self._lazy = isinstance(unit.samples.dataset, IterableDataset)
        self._places: dict[str, int] = {}
        # Whose each sample is, sample by sample and epoch by epoch: 0 = it is run, else 1 + the log's place.
        self._owners = bytearray()
        self._lock = threading.Lock()
        self.copied = 0
        """Samples that were taken over."""
        self.plan = ResumePlan([index.location for index in self._logs], total=unit.total)
        self._why = why
        for place, id in enumerate(() if self._lazy else unit.samples.ids() or ()):
            self.look_at(id, place)

    def look_at(self, id: int | str, place: int) -> None:
        """Find out whose a sample is, in all its epochs; they come in order."""
        self._places[str(id)] = place
        for epoch in range(1, self._epochs + 1):
            owner, why = self._owner(id, epoch)
            self._owners.append(owner)
            if owner:
                self.plan.reused += 1
            else:
                self.plan.note(why, id, epoch if self._epochs > 1 else None)

    def _owner(self, id: int | str, epoch: int) -> tuple[int, Why]:
        """Which log has the sample done, from 1, and else why it must be run.

        What was invalidated is not looked for in older logs.
        """
        why: Why = self._why
        for number in range(len(self._logs), 0, -1):
            state = self._logs[number - 1].state(id, epoch)
            if state == "done":
                return number, why
            if state == "invalidated":
                return _UNKNOWN, "invalidated"
            if state is not None and why == self._why:
                why = state
        return _UNKNOWN, why

    def to_run(self) -> Iterator[tuple[int, int]]:
        """Place and epoch of each sample that is run, in order; for datasets that know their ids."""
        at = self._owners.find(_UNKNOWN)
        while at >= 0:
            yield at // self._epochs, at % self._epochs + 1
            at = self._owners.find(_UNKNOWN, at + 1)

    def claim(self, id: int | str, place: int) -> list[int]:
        """The epochs in which a sample whose id has just been read is run; in the others it will be copied."""
        with self._lock:
            start = len(self._owners)
            self.look_at(id, place)
            return [epoch for epoch in range(1, self._epochs + 1) if self._owners[start + epoch - 1] == _UNKNOWN]

    @property
    def known_at_once(self) -> bool:
        """Whether copying can begin with the run: otherwise the ids come to light one by one."""
        return not self._lazy

    def groups(self) -> Iterator[list[Reused]]:
        """The samples to copy, log by log; each once."""
        for number, index in enumerate(self._logs, 1):
            yield from index.reused(partial(self._take, number))

    def _take(self, number: int, id: int | str, epoch: int) -> bool:
        with self._lock:
            place = self._places.get(str(id))
            at = -1 if place is None or epoch > self._epochs else place * self._epochs + epoch - 1
            if at < 0 or self._owners[at] != number:
                return False
            self._owners[at] = 255  # taken
            self.copied += 1
            return True

    def place(self, id: int | str) -> int:
        """The sample's place in the dataset's order."""
        return self._places[str(id)]

    def failed(self, id: int | str, epoch: int) -> bool:
        """Whether an earlier attempt ended in an error."""
        return any(index.state(id, epoch) == "error" for index in self._logs)

    def earlier_errors(self, id: int | str, epoch: int) -> list[EvalRetryError]:
        """The errors of a sample in earlier logs, oldest first; their events stay there. Blocks."""
        for index in reversed(self._logs):
            if index.state(id, epoch) == "error":
                sample = index.sample(id, epoch)
                assert sample.error is not None
                failed = [*(sample.error_retries or ()), EvalRetryError(**sample.error.model_dump())]
                return [
                    EvalRetryError(message=one.message, traceback=one.traceback, traceback_ansi="") for one in failed
                ]
        return []


def resume_plan(unit: Unit, prior: Sequence[LogIndex], why: Why = "never run") -> ResumePlan:
    """Which samples of ``unit`` a run with these earlier logs would run; blocks, and reads a dataset without ids.

    Args:
        unit: the unit.
        prior: its earlier logs, oldest first.
        why: what is said of samples that no log has.
    """
    reuse = Reuse(unit, prior, why)
    if not reuse.known_at_once:
        for place, sample in enumerate(unit.samples):
            assert sample.id is not None
            reuse.look_at(sample.id, place)
    return reuse.plan
