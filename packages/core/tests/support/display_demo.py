"""A run that only a screen sees. A test starts it in a pseudo-terminal; between frames it waits for a line of input."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import count

from display_snapshots import UNIT, at, finished

from proctor.display import RichDisplay, rich_display


def main() -> None:
    display = rich_display()
    if isinstance(display, RichDisplay):  # each look at the clock is a second later, so that no frame is left out
        display = RichDisplay(clock=map(float, count()).__next__)
    display.start(at(0))
    for second, _ in enumerate(sys.stdin, start=1):
        if second == 2:
            print("task code prints")
        display.update(at(second, replace(UNIT, done=UNIT.done + second)))
        if second == int(sys.argv[1]):
            break
    display.finish(at(62, finished()), 0)


if __name__ == "__main__":
    main()
