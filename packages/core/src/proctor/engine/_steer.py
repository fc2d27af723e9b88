"""What may be changed in a run while it is on: the limits of its gates."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from proctor.concurrency import (
    Connections,
    Gate,
    all_connections,
    named_gates,
    subprocess_gate,
)
from proctor.contracts import UsageError
from proctor.engine._progress import RunProgress, UnitProgress
from proctor.sandbox import exec_gates, sandbox_gates, set_max_sandboxes

__all__ = ["Change", "named", "set_limit"]

_Before: TypeAlias = list[tuple[str, int | None]]
"""The gates that were changed, with their limits before."""
_Changed: TypeAlias = list[tuple[str, int | None, int | None]]
"""The same, and their limits now."""
_USUAL = ("connections", "samples", "tasks", "sandboxes", "execs", "subprocesses")
_NAMED = "named:"


class Change:
    """A change on its way from another thread into the loop: it is made, or withdrawn, never both."""

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


def set_limit(progress: RunProgress, tasks: Gate, kind: str, limit: int | None, of: str | None) -> _Changed:
    """In the loop: change how many may pass a gate.

    Args:
        progress: of the run.
        tasks: the gate of its units.
        kind: ``connections``, ``samples``, ``sandboxes``, ``execs``, ``tasks``, ``subprocesses`` or the name of a gate,
            with ``named:`` before it where one of these words is its name.
        limit: how many, from now on; ``None`` for connections: what the provider's answers say.
        of: which of several: a model, a task or a sandbox provider.

    Returns:
        The gates that were changed, with their limits before and now.

    Raises:
        UsageError: there is no such gate, or there are several.
    """
    if kind == "connections":
        return _set_connections(progress, limit, of)
    if limit is None:
        raise UsageError(f"only connections follow what a provider answers: give a number for {kind}")
    return [(name, old, limit) for name, old in _set_number(progress, tasks, kind, limit, of)]


def _set_number(progress: RunProgress, tasks: Gate, kind: str, limit: int, of: str | None) -> _Before:
    match kind:
        case "samples":
            return _set_samples(progress.units, limit, of)
        case "sandboxes":
            changed = set_max_sandboxes(limit, of)
            if not changed and of is not None:
                raise UsageError(f"no sandbox provider {of!r} is in use{_there(sandbox_gates())}")
            return changed or [("sandboxes", None)]
        case "execs":
            return [_limited(gate, limit) for gate in _exec_gates(of)]
        case "tasks":
            return [_limited(tasks, limit)]
        case "subprocesses":
            return [_limited(subprocess_gate(), limit)]
    known = {gate.name: gate for gate in (*named_gates(), *progress.own_gates())}
    name = kind.removeprefix(_NAMED)
    if name not in known:
        raise UsageError(f"the run has no gate {name!r}: {', '.join([*_USUAL, *map(named, known)])} can be set")
    return [_limited(known[name], limit)]


def _exec_gates(provider: str | None) -> list[Gate]:
    found = [gate for gate in exec_gates() if provider is None or gate.name == f"{provider} execs"]
    if not found:
        whose = f"of the sandbox provider {provider!r}" if provider else "of any sandbox provider"
        raise UsageError(f"the run holds back no commands {whose}{_there(exec_gates())}")
    return found


def named(gate: str) -> str:
    """What a gate that a task has named is called beside the gates that every run has."""
    return f"{_NAMED}{gate}" if gate in _USUAL or gate.startswith(_NAMED) else gate


def _set_connections(progress: RunProgress, limit: int | None, model: str | None) -> _Changed:
    # Asked for before the list is taken, since asking makes them: a grader may not have sent its first request yet.
    of_model = [each.connections()[1] for each in progress.models if each.name == model]
    lines = all_connections()
    if model is not None:
        lines = [line for line in lines if line in of_model or model in _names(line)]
        if not lines:
            raise UsageError(f"no model {model!r} is in use{_there([line.gate for line in all_connections()])}")
    elif len(lines) > 1:
        names = ", ".join(line.gate.name for line in lines)
        raise UsageError(f"the run uses several models: say which with --model, one of {names}")
    elif not lines:
        raise UsageError("the run has sent no request yet, so there are no connections to set")
    changed = []
    for line in lines:
        before = line.gate.limit
        if limit is not None:
            line.set_limit(limit)
        elif not line.follow():
            raise UsageError(
                f"the connections of {line.gate.name} are a fixed number in this run, which no controller moves: "
                "set a number"
            )
        changed.append((line.gate.name, before, line.gate.limit))
    return changed


def _set_samples(units: Sequence[UnitProgress], limit: int, task: str | None) -> _Before:
    wanted = [unit for unit in units if task in (None, unit.unit.name) and (unit.active or unit.status == "waiting")]
    if not wanted:
        raise UsageError(f"no task {task!r} is running or waiting" if task else "no task is running or waiting")
    changed = []
    for unit in wanted:
        changed.append((unit.samples_name, unit.samples or unit.max_samples))
        unit.set_max_samples(limit)
    return changed


def _limited(gate: Gate, limit: int) -> tuple[str, int | None]:
    before = gate.limit
    gate.limit = limit
    return gate.name, before


def _names(line: Connections) -> tuple[str, str]:
    """What connections are called: the first model that used them, and its provider."""
    return line.gate.name, line.gate.name.partition("/")[0]


def _there(gates: Sequence[Gate]) -> str:
    return f"; there are {', '.join(gate.name for gate in gates)}" if gates else ""
