"""A screen that writes lines: for a terminal without colours, a file, a log of somebody else's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TextIO

from proctor.contracts import Display, MessageLevel, RunSnapshot, UnitSnapshot


class AcmeDisplay(Display):
    """Writes how far a run is, and its results at the end.

    Args:
        out: where lines go; standard output by default.
        every: seconds between two lines about a run that goes on.
    """

    def __init__(self, out: TextIO | None = None, every: float = 5.0) -> None:
        self._out = out
        self._every = every
        self._next = 0.0  # when the next line is due, in seconds of the run

    def start(self, snapshot: RunSnapshot) -> None:
        """Say what is going to be run."""
        for unit in snapshot.units:
            samples = "samples" if unit.total is None else f"{unit.total} samples"
            self._write(f"{_name(unit)}: {samples}")

    def update(self, snapshot: RunSnapshot) -> None:
        """Say how far it is. It is called up to ten times a second, so most calls write nothing."""
        if snapshot.elapsed < self._next:
            return
        self._next = snapshot.elapsed + self._every
        done, total = sum(unit.done for unit in snapshot.units), [unit.total for unit in snapshot.units]
        of = "" if None in total else f" of {sum(number or 0 for number in total)}"
        self._write(f"{snapshot.elapsed:.0f} s: {done}{of} samples")

    def finish(self, snapshot: RunSnapshot, exit_code: int) -> None:
        """Write the results, each beside the number of samples that it stands for, and where the logs are."""
        for unit in snapshot.units:
            for line in _results(unit):
                self._write(f"{_name(unit)}: {line}")

    def message(self, text: str, level: MessageLevel = "info") -> None:
        """Write a sentence."""
        self._write(text if level == "info" else f"{level}: {text}")

    def _write(self, line: str) -> None:
        # Texts may hold anything that somebody gave a task for a name: control characters are not for the terminal.
        shown = "".join(char if char.isprintable() else "?" for char in line)
        out = self._out or sys.stdout
        encoding = getattr(out, "encoding", None) or "utf-8"
        out.write(shown.encode(encoding, "replace").decode(encoding) + "\n")
        out.flush()


def _name(unit: UnitSnapshot) -> str:
    return " ".join(part for part in (unit.name, unit.model, unit.label) if part)


def _results(unit: UnitSnapshot) -> Iterator[str]:
    for result in unit.results:
        missing = " (partial)" if result.partial else ""
        yield f"{result.scorer} {result.name} {result.value:.3f}, {result.scored} of {result.total} scored{missing}"
    for kind, count in unit.errors.items():
        yield f"{count} x {kind}"
    if unit.error:
        yield f"{unit.status}: {unit.error}"
    if unit.location:
        yield f"log: {unit.location}"
