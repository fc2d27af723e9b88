"""Events as lines of JSON in a file. Its methods run on a thread of their own: they may be slow, or fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proctor.contracts import Observer, RunEnd, RunStart, SampleEnd, TaskEnd, TaskStart


class AcmeObserver(Observer):
    """Appends one line for each event.

    Args:
        file: is made if it is not there.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    def run_start(self, event: RunStart) -> None:
        """What is going to be run, and where the logs will be."""
        self._say("run_start", run=event.run_id, units=len(event.units), log_dir=event.log_dir)

    def task_start(self, event: TaskStart) -> None:
        """A task with a model begins."""
        self._say("task_start", unit=event.unit, task=event.spec.task, model=event.spec.model)

    def sample_end(self, event: SampleEnd) -> None:
        """A sample is in the log. ``event.load()`` would read all of it: only when its summary is not enough."""
        sample = event.summary
        self._say("sample_end", unit=event.unit, id=sample.id, epoch=sample.epoch, error=sample.error)

    def task_end(self, event: TaskEnd) -> None:
        """A task with a model is done, or has failed."""
        self._say("task_end", unit=event.unit, status=event.header.status, log=event.location)

    def run_end(self, event: RunEnd) -> None:
        """Nothing follows."""
        results = [{"task": row.task, "model": row.model, **dict(row.metrics)} for row in event.table]
        self._say("run_end", exit_code=event.exit_code, results=results)

    def _say(self, event: str, **facts: Any) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **facts}) + "\n")
