"""The sandboxes of a run: one driver and one gate for each provider, and how a sample gets in and out."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from proctor import plugins
from proctor.concurrency import Gate, bounded, cpu_budget
from proctor.contracts import SandboxDriver, SandboxEnvironment
from proctor.monitor import doing
from proctor.registry import loggable
from proctor.sandbox._context import sandbox_context
from proctor.sandbox._files import prepare
from proctor.sandbox._held import held
from proctor.sandbox._owner import new_run_id, own_sandboxes
from proctor.sandbox._recorded import RecordedSandbox
from proctor.schema import Sample, SandboxSpec

__all__ = ["cleanup_sandboxes", "configure_sandboxes", "sample_sandbox", "sandbox_gates", "set_max_sandboxes"]

_log = logging.getLogger("proctor.sandbox")

CLEANUP_SECONDS = 60.0
"""Seconds that taking down the sandboxes of a sample, or of a task, may take."""


@dataclass(slots=True)
class _Provider:
    """A provider as this run uses it."""

    driver: SandboxDriver
    gate: Gate
    execs: Gate | None = None
    """Of the commands in all its sandboxes, for a provider that limits them."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    up: dict[int, dict[str, SandboxEnvironment]] = field(default_factory=dict)
    """The sandboxes of samples that are not taken down yet."""
    ready: dict[tuple[str, str], Any] = field(default_factory=dict)
    """(task, configuration as JSON) -> configuration, of what ``task_init`` has prepared."""


@dataclass(slots=True)
class _RunSandboxes:
    max_sandboxes: int | None = None
    run_id: str = field(default_factory=new_run_id)
    providers: dict[str, _Provider] = field(default_factory=dict)


_current: ContextVar[_RunSandboxes | None] = ContextVar("proctor_run_sandboxes", default=None)


@contextmanager
def configure_sandboxes(max_sandboxes: int | None = None, run_id: str | None = None) -> Iterator[None]:
    """Give the code inside drivers and gates of its own, shared by all tasks that it starts.

    What is prepared for tasks stays until ``cleanup_sandboxes`` is called inside.

    Args:
        max_sandboxes: sandboxes at once of each provider; ``None`` leaves it to the provider.
        run_id: what the run is called on the labels of its sandboxes; by default the process has an id of its own.
    """
    run = _RunSandboxes(max_sandboxes, run_id or new_run_id())
    token = _current.set(run)
    try:
        with own_sandboxes(run.run_id):
            yield
    finally:
        _current.reset(token)


def _run() -> _RunSandboxes:
    run = _current.get()
    if run is None:  # outside a run (a script, a test): one set of sandboxes for this context
        run = _RunSandboxes()
        _current.set(run)
    return run


def sandbox_gates() -> list[Gate]:
    """The gates of the providers that the run has used so far: of sandboxes, and of commands in them."""
    used = list(_run().providers.values())
    return [gate for provider in used for gate in (provider.gate, provider.execs) if gate is not None]


def set_max_sandboxes(limit: int, name: str | None = None) -> list[tuple[str, int | None]]:
    """Change how many sandboxes there may be at once, while the run goes on.

    Args:
        limit: of each provider.
        name: a provider that is in use; ``None`` = all of them, and those that come.

    Returns:
        The names of the gates that were changed, and their limits before.
    """
    run = _run()
    if name is None:
        run.max_sandboxes = limit
    changed = []
    for known, provider in run.providers.items():
        if name in (None, known):
            changed.append((provider.gate.name, provider.gate.limit))
            provider.gate.limit = limit
    return changed


def _provider(name: str) -> _Provider:
    run = _run()
    known = run.providers.get(name)
    if known is None:
        record = plugins.get("sandbox_providers", name)
        limit = run.max_sandboxes or record.default_max_sandboxes(cpu_budget().cpus)
        with plugins.complete("sandbox_providers", name):
            driver = record.factory()
        execs = record.default_max_execs(cpu_budget().cpus)
        known = run.providers[name] = _Provider(
            driver, Gate(f"{name} sandboxes", limit), None if execs is None else Gate(f"{name} execs", execs)
        )
    return known


@asynccontextmanager
async def sample_sandbox(
    spec: SandboxSpec, task_name: str, sample: Sample, cleanup: bool = True, epoch: int = 1
) -> AsyncIterator[Mapping[str, SandboxEnvironment]]:
    """Give the code inside the sandboxes of ``sample``, with its files written and its setup script run.

    Waiting for the provider's gate is not working time.

    Args:
        spec: the provider and its configuration.
        task_name: the task, for the provider's names and labels.
        sample: whose metadata, files and setup script are used.
        cleanup: whether the sandboxes are taken away at the end.
        epoch: of the sample, for the labels.

    Raises:
        UsageError: if there is no such provider.
        RuntimeError: if the setup script failed.
    """
    provider = _provider(spec.type)
    async with held(provider.gate):
        with doing("sandbox", f"start {spec.type}"):
            await _prepare_task(provider, task_name, spec.config)
            with own_sandboxes(_run().run_id, task_name, str(sample.id), epoch):
                made = await provider.driver.sample_init(task_name, spec.config, dict(sample.metadata or {}))
        interrupted = True
        provider.up[id(made)] = made
        try:
            environments: dict[str, SandboxEnvironment] = {
                name: RecordedSandbox(env, provider.execs) for name, env in made.items()
            }
            await prepare(sample, environments)
            with sandbox_context(environments):
                yield environments
            interrupted = False
        except Exception:
            interrupted = False
            raise
        finally:
            if cleanup:
                with doing("sandbox", f"stop {spec.type}"):
                    await _take_down(provider, made, interrupted)
            else:
                _log.info("sandbox of sample %s kept: %s", sample.id, ", ".join(map(repr, made.values())))


async def _take_down(provider: _Provider, made: dict[str, SandboxEnvironment], interrupted: bool) -> None:
    """Take the sandboxes of a sample away; one that takes too long is left, and told of."""
    if not await bounded(partial(provider.driver.sample_cleanup, made, interrupted), CLEANUP_SECONDS):
        names = ", ".join(map(repr, made.values()))
        _log.warning("the sandboxes %s were not gone after %g s and are left behind", names, CLEANUP_SECONDS)
    provider.up.pop(id(made), None)


async def _prepare_task(provider: _Provider, task: str, config: Any) -> None:
    key = (task, json.dumps(loggable(config, keep_secrets=True), sort_keys=True, default=str))
    if key in provider.ready:
        return
    async with provider.lock:  # building one image twice at once helps nobody
        if key not in provider.ready:
            with own_sandboxes(_run().run_id, task):
                await provider.driver.task_init(task, config)
            provider.ready[key] = config


async def cleanup_sandboxes(cleanup: bool = True) -> None:
    """End a run: take away what was prepared for its tasks (or tell the drivers to keep it).

    A driver that fails is logged and doesn't keep the others from being called.
    """
    with anyio.CancelScope(shield=True):
        for name, provider in _run().providers.items():
            while cleanup and provider.up:  # of samples that were left behind
                _, made = provider.up.popitem()
                try:
                    await _take_down(provider, made, True)
                except Exception:
                    _log.exception("sandbox provider %s could not take down %s", name, list(made))
            for (task, _), config in provider.ready.items():
                try:
                    ended = await bounded(partial(provider.driver.task_cleanup, task, config, cleanup), CLEANUP_SECONDS)
                    if not ended:
                        _log.warning("sandbox provider %s had not cleaned up after %s in time", name, task)
                except Exception:
                    _log.exception("sandbox provider %s could not clean up after task %s", name, task)
            provider.ready.clear()
