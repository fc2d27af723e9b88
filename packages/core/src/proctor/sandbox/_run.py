"""The sandboxes of a run: one driver for each provider, with its gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import anyio

from proctor import plugins
from proctor.concurrency import Detached, Gate, cpu_budget
from proctor.contracts import SandboxDriver, SandboxEnvironment
from proctor.sandbox._calls import Calls
from proctor.sandbox._owner import id_outside_of_runs, own_sandboxes

__all__ = [
    "Provider",
    "RunSandboxes",
    "Up",
    "configure_sandboxes",
    "current_run",
    "exec_gates",
    "sandbox_gates",
    "set_max_sandboxes",
]


@dataclass(slots=True, eq=False)
class Up:
    """The sandboxes of one sample that are not taken down yet."""

    made: dict[str, SandboxEnvironment]
    calls: Calls
    going: Detached[None] | None = None
    """What takes them down, once somebody has begun it."""


@dataclass(slots=True, eq=False)
class Provider:
    """A provider as this run uses it."""

    name: str
    driver: SandboxDriver
    gate: Gate
    execs: Gate | None = None
    """Of the commands in all its sandboxes, for a provider that limits them."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    up: dict[Up, None] = field(default_factory=dict)
    ready: dict[tuple[str, str], Any] = field(default_factory=dict)
    """(task, configuration as JSON) -> configuration, of what ``task_init`` has prepared."""
    waiting: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(task, configuration as JSON) -> samples that have begun and for which no sandbox is made yet."""
    reaper: Detached[None] | None = None


@dataclass(slots=True)
class RunSandboxes:
    """What a run has of sandboxes."""

    max_sandboxes: int | None = None
    run_id: str = field(default_factory=id_outside_of_runs)
    keep: bool = False
    providers: dict[str, Provider] = field(default_factory=dict)
    on_use: Callable[[Provider], object] | None = None
    """Called for each provider when the run first uses it."""

    def provider(self, name: str) -> Provider:
        """The provider called ``name``, made when it is first asked for.

        Raises:
            UsageError: there is no such provider, or it can't be used.
        """
        known = self.providers.get(name)
        if known is None:
            record = plugins.get("sandbox_providers", name)
            cpus = cpu_budget().cpus
            most, execs = self.max_sandboxes or record.default_max_sandboxes(cpus), record.default_max_execs(cpus)
            with own_sandboxes(self.run_id, keep=self.keep):
                driver: SandboxDriver = plugins.make("sandbox_providers", record)
            known = Provider(name, driver, Gate(f"{name} sandboxes", most))
            known.execs = None if execs is None else Gate(f"{name} execs", execs)
            self.providers[name] = known
            if self.on_use is not None:
                self.on_use(known)
        return known


_current: ContextVar[RunSandboxes | None] = ContextVar("proctor_run_sandboxes", default=None)


@contextmanager
def configure_sandboxes(
    max_sandboxes: int | None = None, run_id: str | None = None, keep: bool = False
) -> Iterator[None]:
    """Give the code inside drivers and gates of its own, shared by all tasks that it starts.

    What is prepared for tasks stays until ``cleanup_sandboxes`` is called inside.

    Args:
        max_sandboxes: sandboxes at once of each provider; ``None`` leaves it to the provider.
        run_id: what the run is called on the labels of its sandboxes; by default the process has an id of its own.
        keep: sandboxes stay when the run is over, and their labels say so.
    """
    run = RunSandboxes(max_sandboxes, run_id or id_outside_of_runs(), keep)
    token = _current.set(run)
    try:
        with own_sandboxes(run.run_id, keep=keep):
            yield
    finally:
        _current.reset(token)


def current_run() -> RunSandboxes:
    """The run that goes on here; outside of any (a script, a test), one for this context."""
    run = _current.get()
    if run is None:
        run = RunSandboxes()
        _current.set(run)
    return run


def sandbox_gates() -> list[Gate]:
    """The gates of the sandboxes of the providers that the run has used so far."""
    return [provider.gate for provider in list(current_run().providers.values())]


def exec_gates() -> list[Gate]:
    """Those of the commands in them, of providers that limit these."""
    return [provider.execs for provider in list(current_run().providers.values()) if provider.execs is not None]


def set_max_sandboxes(limit: int, name: str | None = None) -> list[tuple[str, int | None]]:
    """Change how many sandboxes there may be at once, while the run goes on.

    Args:
        limit: of each provider.
        name: a provider that is in use; ``None`` = all of them, and those that come.

    Returns:
        The names of the gates that were changed, and their limits before.
    """
    run = current_run()
    if name is None:
        run.max_sandboxes = limit
    changed = []
    for known, provider in run.providers.items():
        if name in (None, known):
            changed.append((provider.gate.name, provider.gate.limit))
            provider.gate.limit = limit
    return changed
