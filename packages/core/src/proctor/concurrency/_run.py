"""The gates of a run, found through a context variable so that two runs in one process never share one by accident."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from proctor.concurrency._cpu import cpu_budget
from proctor.concurrency._gate import Gate
from proctor.contracts import UsageError

__all__ = ["concurrency", "connection_gate", "gates", "run_gates", "subprocess_gate"]


@dataclass(slots=True)
class _RunGates:
    max_subprocesses: int | None = None
    subprocesses: Gate | None = None
    connections: dict[str, Gate] = field(default_factory=dict)
    named: dict[str, tuple[Gate, str]] = field(default_factory=dict)


_current: ContextVar[_RunGates | None] = ContextVar("proctor_run_gates", default=None)


def _gates() -> _RunGates:
    run = _current.get()
    if run is None:  # outside a run (a script, a test): one set of gates for this context
        run = _RunGates()
        _current.set(run)
    return run


@contextmanager
def run_gates(max_subprocesses: int | None = None) -> Iterator[None]:
    """Give the code inside gates of its own; ``max_subprocesses`` defaults to the CPU budget."""
    token = _current.set(_RunGates(max_subprocesses=max_subprocesses))
    try:
        yield
    finally:
        _current.reset(token)


def gates() -> list[Gate]:
    """All gates of the current run that exist so far."""
    run = _gates()
    found = list(run.connections.values())
    if run.subprocesses is not None:
        found.append(run.subprocesses)
    return found + [gate for gate, _ in list(run.named.values())]  # a screen asks from a thread of its own


def connection_gate(key: str, limit: int, label: str | None = None) -> Gate:
    """The gate of all connections that share ``key`` (provider, credential, base URL); the first limit holds."""
    connections = _gates().connections
    gate = connections.get(key)
    if gate is None:
        gate = connections[key] = Gate(label or key, limit)
    return gate


def subprocess_gate() -> Gate:
    """The gate of all subprocesses of the run."""
    run = _gates()
    if run.subprocesses is None:
        run.subprocesses = Gate("subprocesses", run.max_subprocesses or cpu_budget().cpus)
    return run.subprocesses


def concurrency(name: str, limit: int) -> Gate:
    """The run's gate called ``name``: ``async with concurrency("my-rest-api", 10): ...``.

    Raises:
        UsageError: if the gate was made elsewhere with another limit; both places are named.
    """
    caller = sys._getframe(1)
    where = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    known = _gates().named.get(name)
    if known is None:
        gate = Gate(name, limit)
        _gates().named[name] = (gate, where)
        return gate
    gate, first = known
    if gate.limit != limit:
        raise UsageError(
            f"concurrency({name!r}) was given a limit of {gate.limit} at {first} and {limit} at {where}: "
            "use one number for one name"
        )
    return gate
