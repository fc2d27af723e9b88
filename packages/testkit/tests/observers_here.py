"""A plugin with an observer that keeps what it is told, for the tests of the suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.contracts import Observer, ObserverProvider, RunEnd, SampleEnd
from proctor.hookspecs import hookimpl

__all__ = ["Notes", "proctor_observers"]


@dataclass(frozen=True)
class Settings:
    """What ``--observer notes:...`` takes."""

    prefix: str = ""


class Notes(Observer):
    """Writes down the samples, and makes them known when the run is over."""

    kept: list[str] = []

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.now: list[str] = []

    def sample_end(self, event: SampleEnd) -> None:
        self.now.append(f"{self.settings.prefix}{event.load().id}")

    def run_end(self, event: RunEnd) -> None:
        type(self).kept += self.now


@hookimpl
def proctor_observers() -> Sequence[ObserverProvider]:
    return [ObserverProvider(name="notes", factory=Notes, args=Settings)]
