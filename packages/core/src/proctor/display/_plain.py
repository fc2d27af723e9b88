"""The screen of CI logs and pipes: whole lines, each readable alone, and not many of them."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TextIO

from proctor.contracts import Display, MessageLevel, RunSnapshot, UnitSnapshot
from proctor.display._gates import GateTrends
from proctor.display._pace import Pace
from proctor.display._report import report_text
from proctor.display._text import counts, duration, headline, number, plural, retries, retry_parts, titled

__all__ = ["PlainDisplay", "write_line"]

_ASCII = str.maketrans({"·": "|", "±": "+/-", "…": "...", "—": "-", "↑": "+", "↓": "-"})
_MOST_SAMPLES = 20
_MOST_UNITS = 6  # more running units than this share one line


def write_line(stream: TextIO, line: str) -> None:
    """Write ``line``, with what the stream's encoding lacks replaced, so that a log in Latin-1 or ASCII goes on."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        line = line.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    stream.write(line + "\n")
    stream.flush()


class PlainDisplay(Display):
    """A line for each running unit every ``interval`` seconds, one when a unit ends, and the reports at the end.

    Args:
        stream: where it writes; ``None`` = standard output, whatever it is at the time.
        interval: seconds of the run between two lines of a unit.
    """

    def __init__(self, stream: TextIO | None = None, interval: float = 5.0) -> None:
        self._stream = stream
        self._interval = interval
        self._last = 0.0
        self._paces: dict[int, Pace] = {}
        self._gates = GateTrends()
        self._ended: set[int] = set()
        self._told: set[tuple[int, str]] = set()
        self._stalls: dict[int, str] = {}
        self._lost = False

    def start(self, snapshot: RunSnapshot) -> None:
        """Say what will run."""
        units = snapshot.units
        known = [unit.total for unit in units if unit.total is not None]
        samples = plural(sum(known), "sample") if len(known) == len(units) else "samples of unknown number"
        if len(units) == 1:
            self._write(f"{titled(units[0])} · {units[0].model} · {samples}")
        elif units:
            self._write(f"{plural(len(units), 'unit')} · {samples}")
        self._note(snapshot)

    def update(self, snapshot: RunSnapshot) -> None:
        """Write a line when a unit ended or the interval passed."""
        self._note(snapshot)
        self._samples(snapshot)
        for place, unit in enumerate(snapshot.units):
            self._errors(snapshot, place, unit)
            self._stall(snapshot, place, unit)
            if unit.status in ("done", "error", "cancelled") and place not in self._ended:
                self._ended.add(place)
                self._write(self._line(snapshot, place, unit))
        if snapshot.elapsed - self._last >= self._interval:
            self._last = snapshot.elapsed
            self._progress(snapshot)

    def finish(self, snapshot: RunSnapshot, exit_code: int) -> None:
        """Write the reports."""
        lines = report_text(snapshot.units)
        if lines:
            self._write("")
        for line in lines:
            self._write(line)

    def message(self, text: str, level: MessageLevel = "info") -> None:
        """Write a line of its own."""
        self._write(text if level == "info" else f"{level}: {text}")

    def _note(self, snapshot: RunSnapshot) -> None:
        self._gates.note(snapshot.gates)
        for place, unit in enumerate(snapshot.units):
            if unit.status in ("running", "scoring"):
                self._paces.setdefault(place, Pace()).note(snapshot.elapsed, unit.done)

    def _samples(self, snapshot: RunSnapshot) -> None:
        """Write what unfinished samples wait for, each time that somebody asks for it."""
        if snapshot.samples is None:
            return
        self._write(f"[{duration(snapshot.elapsed)}] {plural(len(snapshot.samples), 'unfinished sample')}")
        for sample in snapshot.samples[:_MOST_SAMPLES]:
            doing = "; ".join(f"{duration(seconds)} {what}" for seconds, what in sample.doing)
            self._write(f"  {sample.name} (epoch {sample.epoch}): {doing}")
        if len(snapshot.samples) > _MOST_SAMPLES:
            self._write(f"  and {len(snapshot.samples) - _MOST_SAMPLES:,} more: see `proctor status --all`")

    def _errors(self, snapshot: RunSnapshot, place: int, unit: UnitSnapshot) -> None:
        """Tell of the first error of each kind when it comes: it may be a fault that every sample will have."""
        for kind, example in unit.error_examples.items():
            if (place, kind) not in self._told:
                self._told.add((place, kind))
                self._write(f"[{duration(snapshot.elapsed)}] {self._title(snapshot, unit)} · first {kind}: {example}")

    def _stall(self, snapshot: RunSnapshot, place: int, unit: UnitSnapshot) -> None:
        """Tell when a unit begins to wait, and when it goes on."""
        before = self._stalls.get(place, "")
        if unit.stalled != before:
            self._stalls[place] = unit.stalled
            what = f"waits: {unit.stalled}" if unit.stalled else "goes on"
            self._write(f"[{duration(snapshot.elapsed)}] {self._title(snapshot, unit)} · {what}")

    def _progress(self, snapshot: RunSnapshot) -> None:
        running = [(place, unit) for place, unit in enumerate(snapshot.units) if unit.status in ("running", "scoring")]
        if len(running) > _MOST_UNITS:
            self._write(self._summary(snapshot))
            return
        for place, unit in running:
            self._write(self._line(snapshot, place, unit))
        gates = [self._gates.text(gate) for gate in snapshot.gates]
        if len(running) > 1 and gates:
            self._write(" · ".join([f"[{duration(snapshot.elapsed)}] all", *gates]))

    def _title(self, snapshot: RunSnapshot, unit: UnitSnapshot) -> str:
        return titled(unit) if len(snapshot.units) == 1 else f"{titled(unit)} ({unit.model})"

    def _line(self, snapshot: RunSnapshot, place: int, unit: UnitSnapshot) -> str:
        parts = [f"[{duration(snapshot.elapsed)}] {self._title(snapshot, unit)}", _progress_text(unit)]
        if unit.status in ("done", "error", "cancelled"):
            parts.append({"done": "done", "error": "failed"}.get(unit.status, unit.status))
        elif unit.status == "scoring":
            parts.append("scoring")
        parts += [f"{label} {number(value)}" for label, value in headline(unit.metrics)]
        if failed := sum(unit.errors.values()):
            parts.append(f"{plural(failed, 'error')} ({counts(unit.errors)})")
        if unit.retried:
            parts.append(f"{plural(unit.retried, 'sample')} run again")
        if unit.retries:
            parts.append(retries(unit.retries, unit.retry_cause))
        pace = self._paces.get(place)
        if unit.status == "running" and pace is not None and pace.rate:
            parts.append(f"{pace.rate:.2g}/s" if pace.rate < 10 else f"{pace.rate:,.0f}/s")
            left = pace.left(unit.done, unit.total)
            if left is not None:
                parts.append(f"{duration(left)} left")
        if unit.status == "running" and len(snapshot.units) == 1:
            parts += [self._gates.text(gate) for gate in snapshot.gates]
        return " · ".join(parts)

    def _summary(self, snapshot: RunSnapshot) -> str:
        states = Counter(unit.status for unit in snapshot.units)
        done = sum(unit.done for unit in snapshot.units)
        failed: Counter[str] = Counter()
        for unit in snapshot.units:
            failed.update(unit.errors)
        parts = [
            f"[{duration(snapshot.elapsed)}] {plural(len(snapshot.units), 'unit')}",
            ", ".join(f"{count} {state}" for state, count in states.items()),
            f"{plural(done, 'sample')} done",
        ]
        if failed:
            parts.append(f"{plural(failed.total(), 'error')} ({counts(failed)})")
        parts += retry_parts(snapshot.units)
        parts += [self._gates.text(gate) for gate in snapshot.gates]
        return " · ".join(parts)

    def _write(self, line: str) -> None:
        if self._lost:
            return
        try:
            write_line(self._stream or sys.stdout, line)
        except (OSError, ValueError):  # the reader of the pipe went away: the run goes on without being watched
            self._lost = True


def _progress_text(unit: UnitSnapshot) -> str:
    if unit.total is None:
        return f"{unit.done:,} done"
    share = f" {100 * unit.done // unit.total}%" if unit.total else ""
    return f"{unit.done:,}/{unit.total:,}{share}"
