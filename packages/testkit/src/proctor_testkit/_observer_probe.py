"""An observer that stands between the engine and the one under test, and notes what it is told.

This module is itself a plugin (``--plugin proctor_testkit._observer_probe``): the engine knows nothing of the kit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor import Task, eval
from proctor.contracts import Observer, ObserverProvider, RunEnd, RunStart, SampleEnd, TaskEnd, TaskStart
from proctor.dataset import Sample
from proctor.hookspecs import hookimpl
from proctor.schema import EvalLog
from proctor.scorer import includes

__all__ = ["Probe", "proctor_observers", "recorded_run", "run_task", "tell"]

Event = RunStart | TaskStart | SampleEnd | TaskEnd | RunEnd
NAME = "proctor-testkit-probe"
METHODS: dict[type[Any], str] = {
    RunStart: "run_start",
    TaskStart: "task_start",
    SampleEnd: "sample_end",
    TaskEnd: "task_end",
    RunEnd: "run_end",
}


def tell(observer: Observer, event: Event) -> Any:
    """Call the method for ``event``, and return what it does."""
    return getattr(observer, METHODS[type(event)])(event)


@dataclass
class Probe(Observer):
    """Hands every event on to ``inner``.

    Attributes:
        inner: the observer under test.
        events: what it was told, in order.
        threads: the threads that told it.
        raised: what ``inner`` raised.
        loaded: the ids of the samples that ``load()`` gave.
    """

    inner: Observer = field(default_factory=Observer)
    events: list[Event] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    raised: list[Exception] = field(default_factory=list)
    loaded: list[int | str] = field(default_factory=list)

    def _pass_on(self, event: Event) -> None:
        self.events.append(event)
        self.threads.add(threading.get_ident())
        try:
            tell(self.inner, event)
        except Exception as error:
            self.raised.append(error)
            raise

    def run_start(self, event: RunStart) -> None:
        """Hand it on."""
        self._pass_on(event)

    def task_start(self, event: TaskStart) -> None:
        """Hand it on."""
        self._pass_on(event)

    def sample_end(self, event: SampleEnd) -> None:
        """Read the sample, and hand the event on."""
        self.loaded.append(event.load().id)
        self._pass_on(event)

    def task_end(self, event: TaskEnd) -> None:
        """Hand it on."""
        self._pass_on(event)

    def run_end(self, event: RunEnd) -> None:
        """Hand it on."""
        self._pass_on(event)


_probes: list[Probe] = []


@hookimpl
def proctor_observers() -> Sequence[ObserverProvider]:
    """The probe of the run that is about to begin."""
    return [ObserverProvider(name=NAME, factory=lambda args: _probes[-1])]


def run_task(log_dir: str, observers: Sequence[str], *, samples: int = 4, backend: str | None = None) -> EvalLog:
    """A real run of one task with a scripted model."""
    dataset = [Sample(input="Which colour?", target="Default", id=number + 1) for number in range(samples)]
    task = Task(dataset=dataset, scorer=includes(), name="watched")
    plugins = [__name__] if NAME in observers else None
    options: dict[str, Any] = {"async_backend": backend, "plugins": plugins, "observers": list(observers)}
    [log] = eval(task, model="mock/model", display="none", log_dir=log_dir, **options)
    return log


def recorded_run(log_dir: str, inner: Observer | None = None, **options: Any) -> tuple[EvalLog, Probe]:
    """A real run, and what ``inner`` was told of it."""
    probe = Probe(inner or Observer())
    _probes.append(probe)
    try:
        return run_task(log_dir, [NAME], **options), probe
    finally:
        _probes.remove(probe)
