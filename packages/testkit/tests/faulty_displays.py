"""Displays with one fault each, as a plugin: run by ``test_faulty_components.py`` as a module of tests of its own.

Each is named after the check that it must fail. Where a fault would show in several checks, it is so narrow that it
does not.
"""

from __future__ import annotations

import io
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any, TextIO

from proctor.contracts import Display, DisplayProvider, MessageLevel, RunSnapshot
from proctor.hookspecs import hookimpl
from proctor_testkit import DisplaySuite

FAULTS = ["faultless", *(one.id.partition(".")[2] for one in DisplaySuite.checks())]


class Lines(Display):
    def __init__(self, fault: str, args: Any = None) -> None:
        self.fault = fault
        self.stdout: TextIO | None = None
        self.columns = shutil.get_terminal_size().columns

    def write(self, text: str) -> None:
        shown = text.encode("utf-8", "strict" if self.fault == "odd_text" else "replace").decode()
        (self.stdout or sys.stdout).write(shown + "\n")

    def start(self, snapshot: RunSnapshot) -> None:
        self.stdout = sys.stdout
        if self.fault == "prints":
            sys.stdout = io.StringIO()
        if self.fault == "restores" and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGWINCH, lambda number, frame: None)

    def update(self, snapshot: RunSnapshot) -> None:
        units, thread = snapshot.units, threading.current_thread()
        faulty = {
            "run": len(units) == 3,
            "unknown_length": any(unit.total is None for unit in units),
            "failures": any(unit.status == "cancelled" for unit in units),
            "many": len(units) > 100,
            "narrow": self.columns < 10,
            "thread": thread is not threading.main_thread() and thread.name != "proctor-display",
        }
        if faulty.get(self.fault):
            raise RuntimeError(self.fault)
        for sample in snapshot.samples or ():
            if self.fault != "waits":
                self.write(sample.name)

    def finish(self, snapshot: RunSnapshot, exit_code: int) -> None:
        sys.stdout = self.stdout or sys.stdout
        if self.fault == "empty":
            self.write(snapshot.units[0].name)
        if self.fault == "whole_run" and threading.current_thread().name == "proctor-display":
            raise RuntimeError(self.fault)
        for unit in snapshot.units:
            self.write(f"{unit.name} {unit.model}")
            for metric in unit.results:
                value = "" if self.fault == "results" else f"{metric.value:.3f}"
                self.write(f"{metric.name} {value} of {metric.scored}/{metric.total}")

    def message(self, text: str, level: MessageLevel = "info") -> None:
        if self.fault == "messages" and "\n" in text and "second" in text:
            raise ValueError("one line")
        if self.fault != "warnings" or level == "info":
            self.write(text)


class Awaited(Lines):
    async def start(self, snapshot: RunSnapshot) -> None:  # type: ignore[override]  # the fault
        """Never awaited."""


@hookimpl
def proctor_displays() -> Sequence[DisplayProvider]:
    return [
        DisplayProvider(
            name=fault,
            factory=partial(Awaited if fault == "synchronous" else Lines, fault),
            backends=("trio", "asyncio") if fault == "record" else ("asyncio", "trio"),
        )
        for fault in FAULTS
    ]


ALL = frozenset({"messages", "results", "waits"})

for _fault in FAULTS:
    globals()[f"Test_{_fault}"] = type(
        f"Test_{_fault}", (DisplaySuite,), {"display": _fault, "capabilities": ALL, "__module__": __name__}
    )
