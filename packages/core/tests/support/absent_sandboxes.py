"""A plugin with a sandbox whose SDK is not installed."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.contracts import SandboxDriver, SandboxProvider
from proctor.hookspecs import hookimpl


def _absent() -> SandboxDriver:
    import an_sdk_that_is_not_there  # noqa: F401

    raise AssertionError


@hookimpl
def proctor_sandbox_providers() -> Sequence[SandboxProvider]:
    return [SandboxProvider("absent", _absent)]
