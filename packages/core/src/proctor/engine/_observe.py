"""The threads of observers: told in order, after the fact, never waited for."""

from __future__ import annotations

import queue
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import ValidationError

from proctor import plugins
from proctor.contracts import Observer, RunEnd, RunStart, SampleEnd, TaskEnd, TaskStart
from proctor.engine._screen import component_settings
from proctor.schema import EvalSampleSummary

__all__ = ["Observers", "sample_summary"]

Event: TypeAlias = RunStart | TaskStart | SampleEnd | TaskEnd | RunEnd
_METHODS = {
    RunStart: "run_start",
    TaskStart: "task_start",
    SampleEnd: "sample_end",
    TaskEnd: "task_end",
    RunEnd: "run_end",
}
_WAITING = 10_000  # samples that a slow observer may be behind before it misses some
_DRAIN = 10.0  # seconds at the end
_HURRIED = 2.0  # after a signal


class Observers:
    """All observers of a run. Only those that were asked for are imported; nothing is made of them before ``start``.

    Raises:
        UsageError: for an observer or a setting that does not exist, or an observer that does not run on ``backend``.
    """

    def __init__(self, specs: Sequence[str], backend: str | None = None) -> None:
        self._asked = [component_settings("observers", spec) for spec in specs]
        for record, _ in self._asked:
            plugins.check_backend(record, backend)
        self._watched: list[_Watcher] = []

    def __bool__(self) -> bool:
        return bool(self._watched)

    def start(self) -> None:
        """Make the observers, each with a thread of its own; one that is broken is left out, with a warning.

        Raises:
            UsageError: an observer says that it can't work so; none is started then.
        """
        made = []
        for record, args in self._asked:
            try:
                made.append(_Watcher(record.name, plugins.make("observers", record, args)))
            except plugins.BrokenComponent as error:  # no observer is worth a run
                warnings.warn(f"{error} The run goes on without it.", stacklevel=2)
        for watcher in made:
            watcher.start()
        self._watched = made

    def tell(self, event: Event) -> None:
        """Hand ``event`` to every observer's queue."""
        for watcher in self._watched:
            watcher.put(event)

    def close(self, *, hurry: bool = False) -> None:
        """Give the observers, all at the same time, 10 seconds for what is still queued, or 2 in a hurry."""
        for watcher in self._watched:
            watcher.end()
        seconds = _HURRIED if hurry else _DRAIN
        deadline = time.monotonic() + seconds
        for watcher in self._watched:
            watcher.join(deadline, seconds)


def sample_summary(fields: Mapping[str, Any]) -> EvalSampleSummary:
    """The record that observers get, of the fields that the log's writer hands over; it never raises."""
    try:
        return EvalSampleSummary.model_validate(fields)
    except ValidationError:  # lone surrogates, which pydantic refuses in any text
        visible = _visible(fields)
    try:
        return EvalSampleSummary.model_validate(visible)
    except ValidationError:
        return EvalSampleSummary.trusted(**visible)


def _visible(value: Any) -> Any:
    """``value`` with lone surrogates shown as ``\\ud83d``, as the peer writes them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_visible(key): _visible(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_visible(item) for item in value]
    return value


class _Watcher:
    def __init__(self, name: str, observer: Observer) -> None:
        self._name = name
        self._observer = observer
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._missed = 0
        self._warned = False
        self._thread = threading.Thread(target=self._run, name=f"proctor-observer-{name}", daemon=True)
        self.start = self._thread.start

    def put(self, event: Event) -> None:
        if isinstance(event, SampleEnd) and self._queue.qsize() >= _WAITING:
            self._missed += 1
            return
        self._queue.put(event)

    def end(self) -> None:
        self._queue.put(None)

    def join(self, deadline: float, seconds: float) -> None:
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._missed:
            self._warn(f"was too slow and missed {self._missed} samples")
        if self._thread.is_alive():
            self._warn(f"did not finish within {seconds:g} s and was left behind")

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                getattr(self._observer, _METHODS[type(event)])(event)
            except (Exception, SystemExit) as error:  # none ends the thread: the events that follow must not pile up
                if not self._warned:
                    self._warned = True
                    self._warn(f"raised {type(error).__name__}: {error} (further errors are not shown)")

    def _warn(self, what: str) -> None:
        sys.stderr.write(f"The observer {self._name!r} {what}\n")
