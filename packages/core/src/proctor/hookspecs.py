"""The plugin contract: every hook that Proctor calls, and nothing else.

A plugin is a small module, by custom ``<package>/hooks.py``, that implements some of these hooks::

    from proctor.contracts import ModelProvider
    from proctor.hookspecs import hookimpl


    def _make(name, *, base_url, api_key, config, args):
        from acme_provider.api import AcmeAPI  # the SDK is imported here, when a model is asked for

        return AcmeAPI(name, base_url=base_url, api_key=api_key, config=config)


    @hookimpl
    def proctor_model_providers():
        return [ModelProvider(name="acme", factory=_make, env=(("ACME_API_KEY",),))]

and an entry point that says where it is, so that what a plugin offers is known without importing it::

    [project.entry-points."proctor.model_providers"]
    acme = "acme_provider.hooks"

Hooks are synchronous, take one argument at most and only return records. Importing the module takes less than 30 ms
and pulls in no SDK. A record's name is its entry point's name. `docs/hooks.md` shows an example of each hook.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from proctor.contracts import (
        CommandProvider,
        DisplayProvider,
        LogStoreProvider,
        ModelProvider,
        ObserverProvider,
        PartitionerProvider,
        RunnerProvider,
        SandboxProvider,
        StartupContext,
        TaskPackage,
    )

__all__ = [
    "hookimpl",
    "proctor_commands",
    "proctor_displays",
    "proctor_log_stores",
    "proctor_model_providers",
    "proctor_observers",
    "proctor_partitioners",
    "proctor_runners",
    "proctor_sandbox_providers",
    "proctor_startup",
    "proctor_task_packages",
]

hookspec = pluggy.HookspecMarker("proctor")
hookimpl = pluggy.HookimplMarker("proctor")


@hookspec
def proctor_model_providers() -> Sequence[ModelProvider]:  # type: ignore[empty-body]
    """Offer models: ``--model <name>/...``. Entry-point group ``proctor.model_providers``."""


@hookspec
def proctor_sandbox_providers() -> Sequence[SandboxProvider]:  # type: ignore[empty-body]
    """Offer sandboxes, named by a task, a sample or ``--sandbox``. Entry-point group ``proctor.sandbox_providers``."""


@hookspec
def proctor_log_stores() -> Sequence[LogStoreProvider]:  # type: ignore[empty-body]
    """Offer places for logs, by URL scheme: ``--log-dir <scheme>://...``. Entry-point group ``proctor.log_stores``."""


@hookspec
def proctor_displays() -> Sequence[DisplayProvider]:  # type: ignore[empty-body]
    """Offer screens: ``--display <name>``. Entry-point group ``proctor.displays``."""


@hookspec
def proctor_observers() -> Sequence[ObserverProvider]:  # type: ignore[empty-body]
    """Offer trackers and notifiers: ``--observer <name>``. Entry-point group ``proctor.observers``."""


@hookspec
def proctor_runners() -> Sequence[RunnerProvider]:  # type: ignore[empty-body]
    """Offer ways to run shards of an evaluation. Entry-point group ``proctor.runners``."""


@hookspec
def proctor_partitioners() -> Sequence[PartitionerProvider]:  # type: ignore[empty-body]
    """Offer ways to cut an evaluation into shards. Entry-point group ``proctor.partitioners``."""


@hookspec
def proctor_commands() -> Sequence[CommandProvider]:  # type: ignore[empty-body]
    """Offer commands: ``proctor <name>``. Entry-point group ``proctor.commands``."""


@hookspec
def proctor_task_packages() -> Sequence[TaskPackage]:  # type: ignore[empty-body]
    """Offer packages with tasks, from a plugin without packaging (``--plugin``).

    An installed distribution needs no hook for this: an entry in group ``proctor.tasks`` names the package itself.
    """


@hookspec
def proctor_startup(context: StartupContext) -> None:
    """Prepare the process before task files load: import finders, aliases in the environment.

    Called once a process, for distributions with an entry in group ``proctor.startup``.
    """
