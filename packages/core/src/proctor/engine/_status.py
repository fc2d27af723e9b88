"""What a run tells of itself while it is on, and what may be changed in it: the other end of ``proctor status``.

Questions come in on a thread. What is told is read there, so that a run whose loop stands still can say so; what is
changed is changed in the loop, at its next beat, or not at all.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import asdict
from datetime import datetime
from typing import Any

from proctor.concurrency import (
    Activity,
    Connections,
    Gate,
    LoopWatch,
    Operation,
    RunSocket,
    all_connections,
    gates,
    named_gates,
    settled,
    subprocess_gate,
)
from proctor.contracts import UsageError
from proctor.engine._options import RunOptions
from proctor.engine._progress import RunProgress, UnitProgress
from proctor.model import Model
from proctor.sandbox import sandbox_gates, set_max_sandboxes
from proctor.schema import redact_text

__all__ = ["RunStatus"]

_TOLD = 20  # samples of an answer, unless all are asked for
_CHANGES = 5  # changes of a limit
_LOOP = 2.0  # seconds that the loop has to come to a change
_ACTIVE = ("running", "scoring")


class _Change:
    """A change on its way into the loop: it is made, or withdrawn, never both."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._taken = False
        self._done = threading.Event()
        self._result: Any = None
        self._error: UsageError | None = None

    def make(self) -> None:
        """In the loop: make it, unless it was withdrawn."""
        with self._lock:
            if self._taken:
                return
            self._taken = True
        try:
            self._result = self._make()
        except UsageError as error:
            self._error = error
        except Exception as error:
            self._error = UsageError(f"{type(error).__name__}: {error}")
        self._done.set()

    def result(self, seconds: float) -> Any:
        """Outside: wait for it, or withdraw it.

        Raises:
            TimeoutError: it was withdrawn.
            UsageError: it can't be made.
        """
        if not self._done.wait(seconds):
            with self._lock:
                if not self._taken:
                    self._taken = True
                    raise TimeoutError
            self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result


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
        self._changes: deque[_Change] = deque()
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
        samples = [_sample(unit, each) for unit in units for each in settled(unit.unfinished)]
        samples.sort(key=lambda sample: -sample["operations"][0]["seconds"])
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
            "retries": list(_retries(_models(units))),
            "samples_unfinished": len(samples),
            "samples": samples if all else samples[:_TOLD],
        }

    def _gates(self) -> Iterator[dict[str, Any]]:
        waiting = sum(unit.status == "waiting" for unit in self._progress.units)
        yield {**_gate("tasks", self._tasks), "waiting": waiting}
        for unit in self._progress.units:
            if unit.status in _ACTIVE:
                yield {
                    "kind": "samples",
                    "name": f"samples of {unit.unit.name} ({unit.unit.model.name})",
                    "limit": unit.samples,
                    "held": len(unit.unfinished),
                    "waiting": 0,
                }
        for line in settled(all_connections()):
            yield _connections(line, self._budgets)
        for gate in sandbox_gates():
            yield _gate("sandboxes", gate)
        named = named_gates()
        others = {id(gate) for gate in named} | {id(line.gate) for line in all_connections()}
        for gate in gates():
            if id(gate) not in others:
                yield _gate("subprocesses", gate)
        for gate in named:
            yield _gate("named", gate)
        for gate in _own_gates(self._progress.units):
            yield _gate("named", gate)

    def _set(self, kind: str, limit: Any, of: Any) -> Mapping[str, Any]:
        if type(limit) is not int or limit < 1:
            return {"ok": False, "error": f"a limit is a whole number of at least 1, not {limit!r}"}
        change = _Change(lambda: self._change(kind, limit, of if of is None else str(of)))
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
        return {"ok": True, "changed": [{"name": name, "old": old, "new": limit} for name, old in changed]}

    def _change(self, kind: str, limit: int, of: str | None) -> list[tuple[str, int | None]]:
        """In the loop: make a change; the gates that were changed with their limits before."""
        match kind:
            case "connections":
                return self._set_connections(limit, of)
            case "samples":
                return _set_samples(self._progress.units, limit, of)
            case "sandboxes":
                changed = set_max_sandboxes(limit, of)
                if not changed and of is not None:
                    raise UsageError(f"no sandbox provider {of!r} is in use{_there(sandbox_gates())}")
                return changed or [("sandboxes", None)]
            case "tasks":
                return [_limited(self._tasks, limit)]
            case "subprocesses":
                return [_limited(subprocess_gate(), limit)]
        known = {gate.name: gate for gate in [*named_gates(), *_own_gates(self._progress.units)]}
        if kind not in known:
            usual = "connections, samples, tasks, sandboxes, subprocesses"
            raise UsageError(f"the run has no gate {kind!r}: {', '.join([usual, *known])} can be set")
        return [_limited(known[kind], limit)]

    def _set_connections(self, limit: int, model: str | None) -> list[tuple[str, int | None]]:
        lines = all_connections()
        if model is not None:
            of_model = {id(each.connections()[1]) for each in _models(self._progress.units) if each.name == model}
            lines = [line for line in lines if id(line) in of_model or model in _names(line)]
            if not lines:
                raise UsageError(f"no model {model!r} is in use{_there([line.gate for line in all_connections()])}")
        elif len(lines) > 1:
            names = ", ".join(line.gate.name for line in lines)
            raise UsageError(f"the run uses several models: say which with --model, one of {names}")
        elif not lines:
            raise UsageError("the run has sent no request yet, so there are no connections to set")
        changed = []
        for line in lines:
            changed.append((line.gate.name, line.gate.limit))
            line.set_limit(limit)
        return changed


def _names(line: Connections) -> tuple[str, str]:
    """What connections are called: the first model that used them, and its provider."""
    return line.gate.name, line.gate.name.partition("/")[0]


def _there(gates: Sequence[Gate]) -> str:
    return f"; there are {', '.join(gate.name for gate in gates)}" if gates else ""


def _limited(gate: Gate, limit: int) -> tuple[str, int | None]:
    before = gate.limit
    gate.limit = limit
    return gate.name, before


def _set_samples(units: Sequence[UnitProgress], limit: int, task: str | None) -> list[tuple[str, int | None]]:
    wanted = [unit for unit in units if task in (None, unit.unit.name) and unit.status in ("waiting", *_ACTIVE)]
    if not wanted:
        raise UsageError(f"no task {task!r} is running or waiting" if task else "no task is running or waiting")
    changed = []
    for unit in wanted:
        changed.append((f"samples of {unit.unit.name} ({unit.unit.model.name})", unit.samples or unit.max_samples))
        unit.set_max_samples(limit)
    return changed


def _models(units: Sequence[UnitProgress]) -> list[Model]:
    found = {id(each): each for unit in units for each in (unit.unit.model, *unit.unit.roles.values())}
    return list(found.values())


def _own_gates(units: Sequence[UnitProgress]) -> list[Gate]:
    """The gates of models that have a limit of their own inside the one that they share."""
    gates = {id(gate): gate for model in _models(units) if (gate := model.own_gate) is not None}
    return list(gates.values())


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
    told["changes"] = [asdict(change) for change in line.history[-_CHANGES:]]
    if (shared := line.shared()) is not None:
        told["shared"] = [row._asdict() for row in shared]
    return told


def _retries(models: Sequence[Model]) -> Iterator[dict[str, Any]]:
    for model in models:
        if model.retries or model.last_error:
            kinds = dict(model.retries)
            yield {"model": model.name, "role": model.role, "kinds": kinds, "last_error": model.last_error}


def _sample(unit: UnitProgress, activity: Activity) -> dict[str, Any]:
    return {
        "task": unit.unit.name,
        "model": unit.unit.model.name,
        "id": activity.id,
        "epoch": activity.epoch,
        "attempt": activity.attempt,
        "seconds": round(time.monotonic() - activity.started, 1),
        "operations": [_operation(each) for each in activity.operations() or [_own_code(activity)]],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": operation.kind, "what": redact_text(operation.what[:200])}
    told["seconds"] = round(operation.seconds, 1)
    if operation.attempt:
        told["attempt"] = operation.attempt
    if operation.left is not None:
        told["left"] = round(operation.left, 1)
    if operation.error:
        told["error"] = operation.error
    return told


def _own_code(activity: Activity) -> Operation:
    """Nothing that the core does is under way: it is code of the task's own, since the latest event."""
    spans: list[str] = []
    events = activity.events
    for event in events[:]:
        if event.event == "span_begin":
            spans.append(event.name)
        elif event.event == "span_end" and spans:
            spans.pop()
    seconds = time.monotonic() - activity.started
    if events and isinstance(stamp := events[-1].timestamp, str):
        seconds = min(seconds, max(0.0, time.time() - datetime.fromisoformat(stamp).timestamp()))
    return Operation("code", " > ".join(spans), seconds)
