"""What the core itself offers, registered exactly as a plugin's parts are: small records, and factories that import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from proctor.contracts import DisplayProvider, LogStoreProvider, MockArgs, ModelProvider, SandboxProvider
from proctor.hookspecs import hookimpl

if TYPE_CHECKING:
    from proctor.contracts import Display, LogStore, ModelAPI, SandboxDriver
    from proctor.schema import GenerateConfig

__all__ = ["proctor_displays", "proctor_log_stores", "proctor_model_providers", "proctor_sandbox_providers"]


def _mock(name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig, args: Any) -> ModelAPI:
    from proctor.model import MockAPI

    return MockAPI(name, base_url=base_url, api_key=api_key, config=config, args=args)


def _local_sandbox() -> SandboxDriver:
    from proctor.sandbox import LocalSandboxDriver

    return LocalSandboxDriver()


def _file_store() -> LogStore:
    from proctor.log import FileStore

    return FileStore()


def _memory_store() -> LogStore:
    from proctor.log import MemoryStore

    return MemoryStore()


def _none_display(args: object) -> Display:
    from proctor.display import none_display

    return none_display(args)


def _plain_display(args: object) -> Display:
    from proctor.display import plain_display

    return plain_display(args)


def _rich_display(args: object) -> Display:
    from proctor.display import rich_display

    return rich_display(args)


@hookimpl
def proctor_model_providers() -> Sequence[ModelProvider]:
    """The mock model."""
    return [
        ModelProvider(
            name="mock",
            factory=_mock,
            args=MockArgs,
            adaptive=False,
            summary="scripted answers, latency and failures, without a network",
        )
    ]


@hookimpl
def proctor_sandbox_providers() -> Sequence[SandboxProvider]:
    """The local sandbox."""
    return [
        SandboxProvider(
            name="local",
            factory=_local_sandbox,
            summary="a temporary directory on this machine; commands run unconfined",
            takes_config=False,
        )
    ]


@hookimpl
def proctor_log_stores() -> Sequence[LogStoreProvider]:
    """Files, and the memory of this process."""
    return [
        LogStoreProvider(scheme="file", factory=_file_store, summary="a folder on this machine"),
        LogStoreProvider(scheme="memory", factory=_memory_store, summary="the memory of this process, for tests"),
    ]


@hookimpl
def proctor_displays() -> Sequence[DisplayProvider]:
    """Screens that need no more than a terminal."""
    return [
        DisplayProvider(name="none", factory=_none_display, summary="nothing on the screen"),
        DisplayProvider(name="plain", factory=_plain_display, summary="whole lines, for logs of CI"),
        DisplayProvider(name="rich", factory=_rich_display, summary="live progress in a terminal"),
    ]
