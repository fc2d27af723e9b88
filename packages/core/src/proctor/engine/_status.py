"""What a run tells of itself while it is on: the other end of ``proctor status``.

Questions come in on a thread. What is told is read there, so that a run whose loop stands still can say so; what is
changed (see ``_steer``) is changed in the loop, at its next beat, or not at all.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import asdict
from datetime import datetime
from typing import Any

from proctor.concurrency import (
    Connections,
    Gate,
    all_connections,
    named_gates,
    used_subprocess_gate,
)
from proctor.contracts import UsageError
from proctor.engine._options import RunOptions
from proctor.engine._progress import RunProgress, UnitProgress
from proctor.engine._steer import Change, named, set_limit
from proctor.engine._waits import unfinished_samples
from proctor.model import Model
from proctor.monitor import LoopWatch, RunSocket
from proctor.sandbox import exec_gates, sandbox_gates

__all__ = ["RunStatus"]

_TOLD = 20  # samples of an answer, unless all are asked for
_CHANGES = 5  # changes of a limit
_LOOP = 2.0  # seconds that the loop has to come to a change


class RunStatus:
    """Answers for a run.

    Args:
        run_id: of the run.
        progress: the counters of its units.
        tasks: the gate of its units.
        watch: what watches its loop.
        options: of the run.
        backend: asyncio or trio.
    """

    def __init__(
        self, run_id: str, progress: RunProgress, tasks: Gate, watch: LoopWatch, options: RunOptions, backend: str
    ) -> None:
        self._about = {"run_id": run_id, "pid": os.getpid(), "backend": backend, "log_dir": options.log_dir}
        self._budgets = {"max_rpm": options.max_rpm, "max_tpm": options.max_tpm}
        self._began = time.time()
        self._start = time.monotonic()
        self._progress = progress
        self._tasks = tasks
        self._watch = watch
        self._changes: deque[Change] = deque()
        # Gates are found through the run's context. One of its own: no two threads may be in the same one at once.
        self._context = copy_context()
        self._socket = RunSocket(run_id, self.answer)

    def start(self) -> None:
        """Begin to listen; costs a thread."""
        self._socket.start()

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def beat(self) -> None:
        """In the loop, from time to time: make the changes that were asked for."""
        while self._changes:
            self._changes.popleft().make()

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a question."""
        match question.get("ask"):
            case "status":
                return {"ok": True, "run": self._context.run(self.snapshot, all=bool(question.get("all")))}
            case "set":
                return self._set(str(question.get("gate")), question.get("limit"), question.get("of"))
        return {
            "ok": False,
            "error": f"a run can be asked for its status and to set a gate, not {question.get('ask')!r}",
        }

    def snapshot(self, *, all: bool = False) -> dict[str, Any]:
        """The run at this moment, as JSON data.

        Args:
            all: all unfinished samples, not only those that wait the longest.
        """
        units = self._progress.units
        lag, longest, place = self._watch.state()
        samples = unfinished_samples(units)
        return {
            **self._about,
            "started": datetime.fromtimestamp(self._began).astimezone().isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._start, 1),
            "loop": {
                "lag": round(lag, 3),
                "max_lag": round(longest, 3),
                "stands_in": str(place) if place else None,
                "stalls": [stall.record() for stall in self._watch.stalls()],
            },
            "units": [_unit(unit) for unit in units],
            "gates": list(self._gates()),
            "retries": list(_retries(self._progress.models)),
            "samples_unfinished": len(samples),
            "samples": samples if all else samples[:_TOLD],
        }

    def _gates(self) -> Iterator[dict[str, Any]]:
        waiting = sum(unit.status == "waiting" for unit in self._progress.units)
        yield {**_gate("tasks", self._tasks), "waiting": waiting}
        for unit in self._progress.units:
            if unit.active:
                yield {
                    "kind": "samples",
                    "name": unit.samples_name,
                    "limit": unit.samples,
                    "held": len(unit.unfinished),
                    "waiting": 0,
                }
        for line in all_connections():
            yield _connections(line, self._budgets)
        for gate in sandbox_gates():
            yield _gate("sandboxes", gate)
        for gate in exec_gates():
            yield _gate("execs", gate)
        if (subprocesses := used_subprocess_gate()) is not None:
            yield _gate("subprocesses", subprocesses)
        for gate in (*named_gates(), *self._progress.own_gates()):
            yield {**_gate("named", gate), "name": named(gate.name)}

    def _set(self, kind: str, limit: Any, of: Any) -> Mapping[str, Any]:
        if limit != "auto" and (type(limit) is not int or limit < 1):
            return {"ok": False, "error": f"a limit is a whole number of at least 1, not {limit!r}"}
        wanted = None if limit == "auto" else limit
        change = Change(lambda: set_limit(self._progress, self._tasks, kind, wanted, None if of is None else str(of)))
        self._changes.append(change)
        try:
            changed = change.result(_LOOP)
        except TimeoutError:
            place = self._watch.state().place
            where = f" in {place}" if place else ""
            return {
                "ok": False,
                "stuck": True,
                "error": f"nothing was changed: the run's event loop does not go on, it stands still{where}",
            }
        except UsageError as error:
            return {"ok": False, "error": str(error)}
        return {"ok": True, "changed": [{"name": name, "old": old, "new": new} for name, old, new in changed]}


def _unit(progress: UnitProgress) -> dict[str, Any]:
    shown = progress.snapshot()
    return {
        "task": shown.name,
        "model": shown.model,
        "label": shown.label,
        "status": shown.status,
        "total": shown.total,
        "done": shown.done,
        "running": shown.running,
        "errors": dict(shown.errors),
        "retries": shown.retries,
        "metrics": dict(shown.metrics),
        "input_tokens": shown.input_tokens,
        "output_tokens": shown.output_tokens,
        "location": shown.location,
        "stalled": shown.stalled or None,
    }


def _gate(kind: str, gate: Gate) -> dict[str, Any]:
    return {"kind": kind, "name": gate.name, "limit": gate.limit, "held": gate.held, "waiting": gate.waiting}


def _connections(line: Connections, budgets: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = _gate("connections", line.gate)
    controller = line.controller
    if controller is not None:
        state = asdict(controller.state())
        told["adaptive"] = {**state, "min": controller.limits.min, "max": controller.limits.max}
    pace = line.pacer.state()
    told["pace"] = {"requests_per_minute": pace.requests, "tokens_per_minute": pace.tokens, **budgets}
    told["backing_off"] = line.backing_off
    told["waiting_for_pace"] = line.paced
    told["changes"] = [asdict(change) for change in line.history[-_CHANGES:]]
    if (shared := line.shared()) is not None:
        told["shared"] = [row._asdict() for row in shared]
    return told


def _retries(models: Sequence[Model]) -> Iterator[dict[str, Any]]:
    for model in models:
        if model.retries or model.last_error:
            kinds = dict(model.retries)
            yield {"model": model.name, "role": model.role, "kinds": kinds, "last_error": model.last_error}
