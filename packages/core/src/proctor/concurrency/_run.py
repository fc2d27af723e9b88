"""The gates of a run, found through a context variable so that two runs in one process never share one by accident."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import anyio

from proctor.concurrency._connections import ConnectionPolicy, Connections, Wish
from proctor.concurrency._cpu import cpu_budget
from proctor.concurrency._gate import Gate
from proctor.contracts import UsageError
from proctor.monitor import settled

__all__ = [
    "all_connections",
    "concurrency",
    "connections",
    "gates",
    "named_gates",
    "run_gates",
    "subprocess_gate",
    "tend_gates",
    "used_subprocess_gate",
]

_SOON = 0.01  # seconds between looks at gates that somebody waits for
_IDLE = 0.05


@dataclass(slots=True)
class _RunGates:
    max_subprocesses: int | None = None
    policy: ConnectionPolicy = field(default_factory=ConnectionPolicy)
    subprocesses: Gate | None = None
    connections: dict[str, Connections] = field(default_factory=dict)
    named: dict[str, tuple[Gate, str, int]] = field(default_factory=dict)
    """name -> gate, where it was made, and the limit that it was given there (it may have been changed since)."""


_current: ContextVar[_RunGates | None] = ContextVar("proctor_run_gates", default=None)


def _gates() -> _RunGates:
    run = _current.get()
    if run is None:  # outside a run (a script, a test): one set of gates for this context
        run = _RunGates()
        _current.set(run)
    return run


@contextmanager
def run_gates(max_subprocesses: int | None = None, policy: ConnectionPolicy | None = None) -> Iterator[None]:
    """Give the code inside gates of its own.

    Args:
        max_subprocesses: subprocesses at once; the CPU budget when not given.
        policy: what the run says of its connections.
    """
    run = _RunGates(max_subprocesses, policy or ConnectionPolicy())
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)
        for line in run.connections.values():
            line.close()


def gates() -> list[Gate]:
    """All gates of the current run that exist so far."""
    run = _gates()
    found = [line.gate for line in all_connections()]
    if run.subprocesses is not None:
        found.append(run.subprocesses)
    return found + named_gates()


def all_connections() -> list[Connections]:
    """The connections of the current run on all keys that it has used so far."""
    return settled(_gates().connections.values())  # a screen asks on a thread of its own


def connections(key: str, label: str, wish: Callable[[], Wish]) -> Connections:
    """The connections on ``key`` (provider, credential, base URL), made at first use: the first wish holds."""
    run = _gates()
    line = run.connections.get(key)
    if line is None:
        line = run.connections[key] = Connections(key, label, wish().resolve(run.policy), run.policy)
    return line


async def tend_gates() -> None:
    """Do, for ever, what no event calls for: open slots that fall due, look for what other processes gave back."""
    while True:
        soon = False
        for line in all_connections():
            soon |= line.tend()
        await anyio.sleep(_SOON if soon else _IDLE)


def subprocess_gate() -> Gate:
    """The gate of all subprocesses of the run."""
    run = _gates()
    if run.subprocesses is None:
        run.subprocesses = Gate("subprocesses", run.max_subprocesses or cpu_budget().cpus)
    return run.subprocesses


def used_subprocess_gate() -> Gate | None:
    """The gate of all subprocesses of the run, if any was asked for."""
    return _gates().subprocesses


def named_gates() -> list[Gate]:
    """The gates of the current run that its code has made by name."""
    return [gate for gate, *_ in settled(_gates().named.values())]


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
        _gates().named[name] = (gate, where, limit)
        return gate
    gate, first, given = known
    if given != limit:
        raise UsageError(
            f"concurrency({name!r}) was given a limit of {given} at {first} and {limit} at {where}: "
            "use one number for one name"
        )
    return gate
