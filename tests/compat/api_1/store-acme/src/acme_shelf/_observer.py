"""A ledger of runs."""

from __future__ import annotations

import json
from typing import Any

from acme_shelf.hooks import LedgerArgs
from proctor.contracts import Observer, RunEnd, RunStart, SampleEnd, TaskEnd, TaskStart


class Ledger(Observer):
    """Writes a line for each event."""

    def __init__(self, args: LedgerArgs) -> None:
        self.args = args

    def _write(self, event: str, **data: Any) -> None:
        with open(self.args.file, "a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **data}) + "\n")

    def run_start(self, event: RunStart) -> None:
        units = [{"unit": u.unit, "task": u.task, "model": u.model, "samples": u.samples} for u in event.units]
        self._write("run_start", run_id=event.run_id, log_dir=event.log_dir, started=event.started, units=units)

    def task_start(self, event: TaskStart) -> None:
        self._write("task_start", unit=event.unit, task=event.spec.task, model=event.spec.model)

    def sample_end(self, event: SampleEnd) -> None:
        messages = len(event.load().messages) if self.args.samples else None
        self._write("sample_end", unit=event.unit, id=event.summary.id, epoch=event.summary.epoch, messages=messages)

    def task_end(self, event: TaskEnd) -> None:
        self._write("task_end", unit=event.unit, status=event.header.status, location=event.location)

    def run_end(self, event: RunEnd) -> None:
        rows = [
            {
                "task": row.task,
                "model": row.model,
                "status": row.status,
                "metrics": dict(row.metrics),
                "scored": row.scored,
                "total": row.total,
                "location": row.location,
            }
            for row in event.table
        ]
        self._write("run_end", exit_code=event.exit_code, table=rows)
