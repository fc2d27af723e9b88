"""The threads of observers: told in order, after the fact, never waited for."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Sequence
from typing import TypeAlias

from proctor.contracts import Observer, RunEnd, RunStart, SampleEnd, TaskEnd, TaskStart
from proctor.engine._screen import component_settings

__all__ = ["Observers"]

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


class Observers:
    """All observers of a run. Only those that were asked for are imported.

    Raises:
        UsageError: for an observer or a setting that does not exist.
    """

    def __init__(self, specs: Sequence[str]) -> None:
        self._watched = []
        for spec in specs:
            record, args = component_settings("observers", spec)
            self._watched.append(_Watcher(record.name, record.factory(args)))

    def __bool__(self) -> bool:
        return bool(self._watched)

    def tell(self, event: Event) -> None:
        """Hand ``event`` to every observer's queue."""
        for watcher in self._watched:
            watcher.put(event)

    def close(self) -> None:
        """Give the observers time for what is still queued."""
        deadline = time.monotonic() + _DRAIN
        for watcher in self._watched:
            watcher.close(deadline)


class _Watcher:
    def __init__(self, name: str, observer: Observer) -> None:
        self._name = name
        self._observer = observer
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._missed = 0
        self._warned = False
        self._thread = threading.Thread(target=self._run, name=f"proctor-observer-{name}", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        if isinstance(event, SampleEnd) and self._queue.qsize() >= _WAITING:
            self._missed += 1
            return
        self._queue.put(event)

    def close(self, deadline: float) -> None:
        self._queue.put(None)
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._missed:
            self._warn(f"was too slow and missed {self._missed} samples")
        if self._thread.is_alive():
            self._warn(f"did not finish within {_DRAIN:g} s and was left behind")

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                getattr(self._observer, _METHODS[type(event)])(event)
            except Exception as error:
                if not self._warned:
                    self._warned = True
                    self._warn(f"raised {type(error).__name__}: {error} (further errors are not shown)")

    def _warn(self, what: str) -> None:
        sys.stderr.write(f"The observer {self._name!r} {what}\n")
