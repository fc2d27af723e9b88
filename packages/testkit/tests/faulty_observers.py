"""Observers with one fault each, as a plugin: run by ``test_faulty_components.py`` as a module of tests of its own.

Each is named after the check that it must fail. Where a fault would show in several checks, it is so narrow that it
does not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from proctor.contracts import Observer, ObserverProvider, RunEnd, RunStart, SampleEnd, TaskEnd, TaskStart
from proctor.hookspecs import hookimpl
from proctor_testkit import ObserverSuite

FAULTS = ["faultless", *(one.id.partition(".")[2] for one in ObserverSuite.checks())]
MADE_KNOWN: list[Any] = []


class Tracker(Observer):
    def __init__(self, fault: str, args: Any = None) -> None:
        self.fault = fault
        self.started: list[str] = []
        self.ended: set[str] = set()
        self.count = 0
        self.planned = 0
        self.broken = False
        self.folder = ""

    def broke(self, fault: str, faulty: bool) -> None:
        if self.fault == fault and faulty:
            raise RuntimeError(fault)

    def run_start(self, event: RunStart) -> None:
        MADE_KNOWN.clear()
        self.broke("nothing_to_do", not event.units)
        self.broke("unknown_length", any(unit.samples is None for unit in event.units))
        self.planned = sum(unit.samples or 0 for unit in event.units)
        self.folder = event.log_dir.rpartition("/")[2]

    def task_start(self, event: TaskStart) -> None:
        self.broke("again", event.unit in self.started)
        self.broke("several_units", bool(set(self.started) - self.ended - {event.unit}))
        self.started.append(event.unit)

    def sample_end(self, event: SampleEnd) -> None:
        self.broke("failures", event.summary.error is not None)
        self.broke("odd_text", event.summary.id == "")
        if self.fault == "unchanged":
            event.summary.metadata["seen"] = True
        if self.fault == "keeps_up" and self.planned > 100:
            time.sleep(0.03)
            return
        self.broke("load_fails", self.broken)
        if self.fault == "load_fails":
            self.broken = True
            event.load()
            self.broken = False
        self.count += 1
        if self.fault != "complete" or self.count % 10:
            MADE_KNOWN.append(event.summary.id)

    def task_end(self, event: TaskEnd) -> None:
        self.ended.add(event.unit)
        self.broke(self.fault, self.fault in ("whole_run", "order") and self.folder == self.fault)
        self.broke("load_fails", self.broken)

    def run_end(self, event: RunEnd) -> None:
        self.broke("cut_short", event.exit_code == 130)
        if self.fault == "ends":
            threading.Thread(target=time.sleep, args=(3,)).start()


class Awaited(Tracker):
    async def task_start(self, event: TaskStart) -> None:  # type: ignore[override]  # the fault
        """Never awaited."""


@hookimpl
def proctor_observers() -> Sequence[ObserverProvider]:
    return [
        ObserverProvider(
            name=fault,
            factory=partial(Awaited if fault == "synchronous" else Tracker, fault),
            backends=("trio", "asyncio") if fault == "record" else ("asyncio", "trio"),
        )
        for fault in FAULTS
    ]


class Faulty(ObserverSuite):
    capabilities = frozenset({"records"})

    @pytest.fixture
    def recorded(self, watcher: Tracker) -> Callable[[], list[Any]]:
        known: list[Any] = type(watcher).run_start.__globals__["MADE_KNOWN"]  # of the plugin, which is loaded apart
        return lambda: known


for _fault in FAULTS:
    globals()[f"Test_{_fault}"] = type(f"Test_{_fault}", (Faulty,), {"observer": _fault, "__module__": __name__})
