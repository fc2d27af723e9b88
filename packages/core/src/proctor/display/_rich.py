"""The screen of a terminal: progress that is drawn over, then the reports in colour."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from proctor.contracts import Display, MessageLevel, RunSnapshot
from proctor.display._frame import Frame
from proctor.display._gates import GateTrends
from proctor.display._live import live_view
from proctor.display._pace import Pace
from proctor.display._report import UnitReport, report, summary

__all__ = ["RichDisplay"]

_REDRAW = 0.1  # seconds: ten times a second at most
_NARROW = 24  # columns beside the labels
_LEVELS = {"info": "", "warning": "yellow", "error": "bold red"}
_ENDINGS = {"done": "green", "error": "bold red", "cancelled": "yellow"}
_KINDS = {"metric": "bold", "unscored": "yellow", "outcomes": "yellow", "error": "red", "log": "cyan", "next": "bold"}

_WHOLE = ("status", "score", "scored")  # columns of the table of several units that are not folded
_SPARE = ("outcomes", "scored")  # those that go first
_FOLDED = 8  # characters to which a column may be folded


class RichDisplay(Display):
    """Draws one line for each unit, running scores, gates, tokens and errors; ends with a report of each unit.

    Args:
        console: where it draws; ``None`` = a console on standard output.
        clock: seconds of a clock that never goes back.
    """

    draws_over = True

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(highlight=False)
        self._frame = Frame(self._console)
        self._clock = clock
        self._drawn: float | None = None
        self._paces: dict[int, Pace] = {}
        self._gates = GateTrends()
        self._snapshot = RunSnapshot()
        self._open = False

    def start(self, snapshot: RunSnapshot) -> None:
        """Take over the bottom of the terminal."""
        self._frame.open()
        self._open = True
        with self._nothing_held_back():
            self._take(snapshot)
            self._draw()

    def update(self, snapshot: RunSnapshot) -> None:
        """Draw anew, unless it was drawn a moment ago."""
        with self._nothing_held_back():
            self._take(snapshot)
            if self._drawn is None or self._clock() - self._drawn >= _REDRAW:
                self._draw()

    def finish(self, snapshot: RunSnapshot, exit_code: int) -> None:
        """Give the terminal back and print the reports."""
        self._open = False
        self._frame.close()
        for unit in snapshot.units:
            _print_report(self._console, report(unit))
        if table := summary(snapshot.units):
            _print_summary(self._console, table)

    def message(self, text: str, level: MessageLevel = "info") -> None:
        """Print a sentence above the frame."""
        line = Text(text if level == "info" else f"{level}: {text}", style=_LEVELS[level])
        if self._open:
            with self._nothing_held_back():
                self._draw(line)
        else:
            self._console.print(line)

    @contextmanager
    def _nothing_held_back(self) -> Iterator[None]:
        """After a fault the engine turns a display off: what others printed meanwhile must come out nevertheless."""
        try:
            yield
        except Exception:
            self._open = False
            self._frame.abandon()
            raise

    def _take(self, snapshot: RunSnapshot) -> None:
        self._snapshot = snapshot
        self._gates.note(snapshot.gates)
        for place, unit in enumerate(snapshot.units):
            if unit.status in ("running", "scoring"):
                self._paces.setdefault(place, Pace()).note(snapshot.elapsed, unit.done)

    def _draw(self, *above: RenderableType) -> None:
        width, height = self._console.size
        self._frame.draw(live_view(self._snapshot, self._paces, self._gates, width - 1, height), above)
        self._drawn = self._clock()


def _print_summary(console: Console, rows: Sequence[tuple[str, ...]]) -> None:
    """A table of several units. Rows are told by all their cells, so those are folded rather than cut, but no number.

    Where that does not fit, columns go, and at last the table: all of it stands in the reports above.
    """
    columns = list(zip(*rows, strict=True))
    for spare in ("", *_SPARE):
        columns = [column for column in columns if column[0] != spare]
        if sum(map(_least_width, columns)) + 2 * (len(columns) - 1) <= console.width:
            break
    else:
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(overflow="fold", no_wrap=column[0] in _WHOLE)
    for place, row in enumerate(zip(*columns, strict=True)):
        grid.add_row(*map(Text, row), style="" if place else "dim")
    console.print(grid)


def _least_width(column: Sequence[str]) -> int:
    width = max(map(cell_len, column))
    return width if column[0] in _WHOLE else min(width, _FOLDED)


def _print_report(console: Console, item: UnitReport) -> None:
    ending = Text(item.ending, style=_ENDINGS.get(item.status, ""))
    parts = [Text(item.name, style="bold"), Text(item.label), Text(item.model), ending]
    console.print(Text(" · ").join(part for part in parts if part))
    labels = max((len(row.label) for row in item.rows), default=0)
    values = max((len(row.value) for row in item.rows if row.note), default=0)
    for row in item.rows:
        label = Text(f"  {row.label:<{labels}}  ", style="dim")
        value = Text(f"{row.value:<{values}}" if row.note else row.value, style=_KINDS.get(row.kind, ""))
        if row.note:
            value.append(f"  {row.note}", style="yellow" if row.kind == "unscored" else "not bold dim")
        if row.kind in ("log", "next") or console.width < labels + _NARROW:
            # A path is copied: it stays in one piece. In a sliver of a window nothing lines up anyway.
            console.print(label + value, soft_wrap=True)
        else:
            grid = Table.grid()
            grid.add_column(no_wrap=True)
            grid.add_column(overflow="fold")
            grid.add_row(label, value)
            console.print(grid)
    console.print()
