"""Sandboxes at the start of a run and at its end: what can't work is refused, what dead runs left is taken away."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import anyio

from proctor import plugins
from proctor.concurrency import Detached, bounded, with_detached_tasks
from proctor.contracts import RunningSandbox, UsageError
from proctor.sandbox._calls import STOPPING, answered
from proctor.sandbox._run import Provider, current_run
from proctor.sandbox._sample import CLEANUP_SECONDS, take_down
from proctor.schema import SandboxSpec

__all__ = ["begin_reaping", "check_sandbox", "cleanup_sandboxes", "end_reaping", "kept_sandboxes"]

T = TypeVar("T")

_log = logging.getLogger("proctor.sandbox")

CHECK_SECONDS = 60.0
"""Seconds that a provider has to say whether a configuration can work."""
REAP_SECONDS = 60.0
"""Seconds that a run waits at its end for what dead runs left to be taken away."""
LIST_SECONDS = 30.0
"""Seconds that a provider has to say which sandboxes there are."""


async def check_sandbox(spec: SandboxSpec) -> None:
    """Make the driver of a provider, and let it refuse a configuration that can't work.

    Raises:
        UsageError: there is no such provider, something that it needs is missing, or the configuration makes no sense.
    """
    async with with_detached_tasks():
        late = f"it did not say within {CHECK_SECONDS:g} s whether it can be used"
        try:
            driver = current_run().provider(spec.type).driver
            await answered(partial(_contained, spec.type, partial(driver.check, spec.config)), CHECK_SECONDS, late)
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(f"the sandbox {spec.type!r} can't be used: {error}") from error


async def _contained(name: str, work: Callable[[], Awaitable[T]]) -> T:
    """``work`` of the provider ``name``, whose ``sys.exit()`` must not be that of the run."""
    with plugins.contained("sandbox_providers", name):
        return await work()


def begin_reaping(say: Callable[[str], object]) -> None:
    """In the background, take away what dead runs have left behind: of each provider that this run uses, or will use.

    Args:
        say: told what was removed, in a sentence.
    """
    run = current_run()

    def begin(provider: Provider) -> None:
        provider.reaper = Detached(partial(_reap, provider, say))

    run.on_use = begin
    for provider in run.providers.values():
        begin(provider)


async def _reap(provider: Provider, say: Callable[[str], object]) -> None:
    try:
        removed = await provider.driver.reap(None)
    except Exception as error:  # whatever it is, it is not this run's
        _log.warning(
            "what dead runs left behind of sandboxes (%s) could not be taken away (%s: %s): try "
            "`proctor sandbox cleanup %s`",
            *(provider.name, type(error).__name__, error, provider.name),
        )
        return
    if removed:
        names = ", ".join(removed[:5]) + (f" and {len(removed) - 5} more" if len(removed) > 5 else "")
        say(f"Took away what runs that have died left behind ({provider.name}): {names}.")


async def end_reaping(seconds: float = REAP_SECONDS) -> None:
    """Wait until that is done, for so long and no longer."""
    run = current_run()
    run.on_use = None
    with anyio.CancelScope(shield=True):
        until = anyio.current_time() + seconds
        for provider in run.providers.values():
            reaper, provider.reaper = provider.reaper, None
            if reaper is not None and not await reaper.wait(max(0.0, until - anyio.current_time())):
                await reaper.stop(STOPPING)


async def kept_sandboxes() -> dict[str, list[RunningSandbox]]:
    """By provider, the sandboxes that this run leaves for a person to look into, as far as that can be found out."""
    run = current_run()
    kept: dict[str, list[RunningSandbox]] = {}
    with anyio.CancelScope(shield=True):
        for name, provider in run.providers.items():
            late = f"{name} did not say within {LIST_SECONDS:g} s which sandboxes there are"
            try:
                found = await answered(provider.driver.sandboxes, LIST_SECONDS, late)
            except Exception as error:
                _log.warning("which sandboxes (%s) were kept is not known: %s", name, error)
                continue
            mine = [each for each in found if each.owner is not None and each.owner.run_id == run.run_id]
            if mine:
                kept[name] = mine
    return kept


async def cleanup_sandboxes(cleanup: bool = True) -> None:
    """End a run: take away what was prepared for its tasks (or tell the drivers to keep it).

    A driver that fails, or does not answer, is logged and doesn't keep the others from being called.
    """
    with anyio.CancelScope(shield=True):
        async with with_detached_tasks(), anyio.create_task_group() as tasks:
            for provider in current_run().providers.values():
                tasks.start_soon(_end, provider, cleanup)


async def _end(provider: Provider, cleanup: bool) -> None:
    async with anyio.create_task_group() as tasks:
        for up in list(provider.up):  # of samples that were left behind
            if cleanup:
                tasks.start_soon(take_down, provider, up, True)
    for up in list(provider.up):
        up.calls.end()
    provider.up.clear()
    for (task, _), config in provider.ready.items():
        try:
            work = partial(provider.driver.task_cleanup, task, config, cleanup)
            ended = await bounded(partial(_contained, provider.name, work), CLEANUP_SECONDS)
            if not ended:
                _log.warning("sandbox provider %s had not cleaned up after %s in time", provider.name, task)
        except UsageError as error:  # its sentence says all
            _log.error("sandbox provider %s could not clean up after task %s: %s", provider.name, task, error)
        except Exception:
            _log.exception("sandbox provider %s could not clean up after task %s", provider.name, task)
    provider.ready.clear()
