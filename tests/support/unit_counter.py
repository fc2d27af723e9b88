"""A plugin file: an observer that writes down how many units are alive, ``--observer unit-counter:file=...``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from proctor.contracts import Observer, ObserverProvider, RunEnd, TaskEnd, TaskStart
from proctor.hookspecs import hookimpl


@dataclass(frozen=True)
class Settings:
    file: str = "units.txt"


class UnitCounter(Observer):
    def __init__(self, file: Path) -> None:
        self._file = file
        self._live: set[str] = set()
        self._counts: list[int] = []

    def task_start(self, event: TaskStart) -> None:
        self._live.add(event.unit)
        self._counts.append(len(self._live))

    def task_end(self, event: TaskEnd) -> None:
        self._live.discard(event.unit)

    def run_end(self, event: RunEnd) -> None:
        self._file.write_text(" ".join(map(str, self._counts)), encoding="utf-8")


@hookimpl
def proctor_observers() -> list[ObserverProvider]:
    return [ObserverProvider("unit-counter", lambda args: UnitCounter(Path(args.file)), args=Settings)]
