"""How a sample gets into its sandboxes, and out of them whatever happens."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import anyio

from proctor.concurrency import Detached, Gate, with_detached_tasks
from proctor.contracts import SandboxBrokenError, SandboxEnvironment, UsageError
from proctor.monitor import doing
from proctor.registry import loggable
from proctor.sandbox._calls import STOPPING, Calls, answered, at_gate
from proctor.sandbox._context import sandbox_context
from proctor.sandbox._demand import expecting
from proctor.sandbox._files import prepare
from proctor.sandbox._owner import own_sandboxes
from proctor.sandbox._recorded import RecordedSandbox
from proctor.sandbox._run import Provider, RunSandboxes, Up, current_run
from proctor.schema import Sample, SandboxSpec

__all__ = ["CLEANUP_SECONDS", "sample_sandbox", "take_down"]

_log = logging.getLogger("proctor.sandbox")

CLEANUP_SECONDS = 60.0
"""Seconds that taking down the sandboxes of a sample, or of a task, may take."""
TASK_SECONDS = 3600.0
"""Seconds that preparing a task may take: images are built and pulled."""


@asynccontextmanager
async def sample_sandbox(
    spec: SandboxSpec,
    task_name: str,
    sample: Sample,
    cleanup: bool = True,
    epoch: int = 1,
    start_seconds: float | None = None,
    to_come: Callable[[], int | None] | None = None,
) -> AsyncIterator[Mapping[str, SandboxEnvironment]]:
    """Give the code inside the sandboxes of ``sample``, with its files written and its setup script run.

    Waiting for the provider's gate is not working time. What the provider can't take down is told of and left; the
    sample is none the worse for it.

    Args:
        spec: the provider and its configuration.
        task_name: the task, for the provider's names and labels.
        sample: whose metadata, files and setup script are used.
        cleanup: whether the sandboxes are taken away at the end.
        epoch: of the sample, for the labels.
        start_seconds: that making the sandboxes and what the sample brings into them may take; ``None`` = any time.
        to_come: how many samples that have not begun will want the same, for drivers that ask
            (``samples_to_come``); by default that is not known.

    Raises:
        UsageError: if there is no such provider, or its configuration makes no sense.
        SandboxBrokenError: if the sandboxes could not be made, or one of them has broken: at the end of the block, when
            the code inside has swallowed that.
        RuntimeError: if the setup script failed.
    """
    async with with_detached_tasks():
        life = _Life(current_run(), spec, task_name, sample, cleanup, epoch, to_come)
        with life.counted():
            async with _inside(life.provider.gate):
                interrupted = True
                try:
                    with doing("sandbox", f"start {spec.type}"):
                        environments = await life.begin(start_seconds)
                    with sandbox_context(environments):
                        yield environments
                    interrupted = False
                    life.raise_broken()
                except Exception:
                    interrupted = False
                    raise
                finally:
                    await life.end(interrupted)


class _Life:
    """The sandboxes of one sample, from their start to their end."""

    def __init__(
        self,
        run: RunSandboxes,
        spec: SandboxSpec,
        task: str,
        sample: Sample,
        cleanup: bool,
        epoch: int,
        to_come: Callable[[], int | None] | None,
    ) -> None:
        self.provider = run.provider(spec.type)
        self._spec = spec
        self._task = task
        self._sample = sample
        self._cleanup = cleanup
        self._epoch = epoch
        self._owned = partial(own_sandboxes, run.run_id, task, keep=not cleanup)
        self._key = (task, json.dumps(loggable(spec.config, keep_secrets=True), sort_keys=True, default=str))
        self._to_come = _to_come(to_come, self.provider.waiting, self._key)
        self._waits = False
        self._up: Up | None = None

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Among those that wait, until it has its turn."""
        self._waits = True
        self.provider.waiting[self._key] += 1
        try:
            yield
        finally:
            self._has_its_turn()

    def _has_its_turn(self) -> None:
        if self._waits:
            self._waits = False
            self.provider.waiting[self._key] -= 1

    async def begin(self, seconds: float | None) -> dict[str, SandboxEnvironment]:
        """Make them, within so many seconds once the task is prepared, and bring in what the sample has for them."""
        with self._owned():
            await _prepare_task(self.provider, self._key, self._spec.config)
        if seconds is None:
            return await self._make()
        late = f"the sandbox {self._spec.type!r} of the sample was not there after {seconds:g} s"
        return await answered(self._make, seconds, late)

    async def _make(self) -> dict[str, SandboxEnvironment]:
        """Known from outside as soon as they are made: they are taken down though the rest takes too long."""
        provider, sample = self.provider, self._sample
        self._has_its_turn()
        with self._owned(str(sample.id), self._epoch), expecting(self._to_come):
            try:
                metadata = dict(sample.metadata or {})
                made: Any = await provider.driver.sample_init(self._task, self._spec.config, metadata)
            except (UsageError, SandboxBrokenError):
                raise
            except Exception as error:
                raise _not_started(self._spec.type, error) from error
        if not isinstance(made, dict):
            raise SandboxBrokenError(
                f"the sandbox {self._spec.type!r} could not be started: sample_init() returned {made!r:.100}, not its "
                "environments by their names"
            )
        self._up = up = Up(made, Calls(provider.execs))
        provider.up[up] = None
        environments: dict[str, SandboxEnvironment] = {
            name: RecordedSandbox(env, up.calls) for name, env in made.items()
        }
        await prepare(sample, environments)
        return environments

    def raise_broken(self) -> None:
        """Raise what one of them has raised, though the code inside has swallowed it."""
        if self._up is not None and self._up.calls.broken is not None:
            raise self._up.calls.broken

    async def end(self, interrupted: bool) -> None:
        """Take them down, or leave them to a person."""
        up = self._up
        if up is None:
            return
        try:
            if self._cleanup:
                with doing("sandbox", f"stop {self.provider.name}"):
                    await take_down(self.provider, up, interrupted)
            else:
                _log.info("sandbox of sample %s kept: %s", self._sample.id, ", ".join(map(repr, up.made.values())))
        finally:
            up.calls.end()
            self.provider.up.pop(up, None)


async def take_down(provider: Provider, up: Up, interrupted: bool) -> None:
    """Take the sandboxes of a sample away, once; what fails or takes too long is told of, and left."""
    if up.going is None:
        up.going = Detached(partial(provider.driver.sample_cleanup, up.made, interrupted))
    going, names = up.going, ", ".join(map(repr, up.made.values()))
    left = "`proctor sandbox cleanup` takes away what is left, once this run is over"
    with anyio.CancelScope(shield=True):
        if not await going.wait(CLEANUP_SECONDS):
            await going.stop(STOPPING)
            _log.warning("the sandboxes %s were not gone after %g s: %s", names, CLEANUP_SECONDS, left)
        elif going.failed is not None:
            error = f"{type(going.failed).__name__}: {going.failed}"
            _log.warning("the sandboxes %s could not be taken down (%s): %s", names, error, left)


def _to_come(
    not_begun: Callable[[], int | None] | None, waiting: Counter[tuple[str, str]], key: tuple[str, str]
) -> Callable[[], int | None]:
    """How many samples will want what the one at hand has: a driver may keep it, so it must not hold the sample."""

    def to_come() -> int | None:
        begin = None if not_begun is None else not_begun()
        return None if begin is None else begin + waiting[key]

    return to_come


def _not_started(name: str, error: Exception) -> SandboxBrokenError:
    return SandboxBrokenError(f"the sandbox {name!r} could not be started: {type(error).__name__}: {error}")


@asynccontextmanager
async def _inside(gate: Gate) -> AsyncIterator[None]:
    await at_gate(gate)
    try:
        yield
    finally:
        gate.release()


async def _prepare_task(provider: Provider, key: tuple[str, str], config: Any) -> None:
    task = key[0]
    if key in provider.ready:
        return
    async with provider.lock:  # building one image twice at once helps nobody
        if key in provider.ready:
            return
        late = f"the sandbox {provider.name!r} had not prepared the task {task!r} after {TASK_SECONDS:g} s"
        try:
            await answered(partial(provider.driver.task_init, task, config), TASK_SECONDS, late)
        except (UsageError, SandboxBrokenError):
            raise
        except Exception as error:
            raise _not_started(provider.name, error) from error
        provider.ready[key] = config
