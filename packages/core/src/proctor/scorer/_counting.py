"""Metrics that say of how many samples each of their values is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proctor.scorer._types import Accumulator


@dataclass(slots=True)
class Count:
    """The samples of one of a metric's values: with a score, without one, and single epochs that lack one."""

    scored: int = 0
    missed: int = 0
    missed_epochs: int = 0

    def facts(self, complete: bool) -> dict[str, int]:
        """For the log; ``complete``: all samples were seen, so that it is known how many were planned."""
        facts = {"scored": self.scored}
        if complete:
            facts["planned"] = self.scored + self.missed
        if self.missed_epochs:
            facts["missing_epochs"] = self.missed_epochs
        return facts

    def merge(self, other: Count) -> None:
        """Take all of ``other`` into account."""
        self.scored += other.scored
        self.missed += other.missed
        self.missed_epochs += other.missed_epochs


class CountingAccumulator(Accumulator):
    """An accumulator of several values, each of samples of its own."""

    __slots__ = ()

    @abstractmethod
    def missed(self, metadata: Mapping[str, Any], position: float, epochs: int | None) -> None:
        """Note a sample without a score.

        Args:
            metadata: the sample's.
            position: its place in the order of the run.
            epochs: how many of its epochs lack a score, where others have one; ``None``: all of it.
        """

    @abstractmethod
    def counts(self) -> dict[str, Count]:
        """By the names of the values that ``result`` gives."""
