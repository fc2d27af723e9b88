"""What can be checked from a record alone, before any SDK is imported."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from proctor.contracts import PrerequisiteError, UsageError

if TYPE_CHECKING:
    from proctor.contracts import DisplayProvider, ModelProvider, ObserverProvider, SandboxProvider


class NeedsEnv(Protocol):
    """A record that says which environment variables it needs."""

    @property
    def name(self) -> str:
        """The component's name."""

    @property
    def env(self) -> tuple[tuple[str, ...], ...]:
        """Alternatives, each a set of variables."""


def missing_env(record: NeedsEnv, environ: Mapping[str, str] | None = None) -> list[tuple[str, ...]]:
    """For each alternative of ``record.env`` the variables that are unset or empty; ``[]`` when one is complete.

    Args:
        record: a :class:`~proctor.contracts.ModelProvider` or whatever else has ``env``.
        environ: read instead of the process's environment.
    """
    environ = os.environ if environ is None else environ
    missing = [tuple(name for name in names if not environ.get(name)) for names in record.env]
    return missing if all(missing) else []


def require_env(record: NeedsEnv, environ: Mapping[str, str] | None = None) -> None:
    """Refuse a component whose variables are missing.

    Raises:
        PrerequisiteError: naming the alternatives and how to set them.
    """
    missing = missing_env(record, environ)
    if missing:
        ways = ", or ".join(" and ".join(names) for names in missing)
        raise PrerequisiteError(
            f"The provider {record.name!r} needs {ways} in the environment (or in a .env file): "
            f"export {missing[0][0]}=..."
        )


def running_backend() -> str | None:
    """The async back-end of the loop that runs here, ``asyncio`` or ``trio``; None outside of any."""
    if trio := sys.modules.get("trio"):
        # Not by in_trio_run(): an old trio, there for something else, must not break a run on asyncio.
        with contextlib.suppress(RuntimeError):
            trio.lowlevel.current_trio_token()
            return "trio"
    asyncio = sys.modules.get("asyncio")
    return None if asyncio is None or asyncio._get_running_loop() is None else "asyncio"


def check_backend(
    record: ModelProvider | SandboxProvider | DisplayProvider | ObserverProvider, backend: str | None = None
) -> None:
    """Refuse a component that does not run on the async back-end in use.

    Args:
        record: what the component's plugin says of it.
        backend: ``asyncio`` or ``trio``; by default that of the running loop, and nothing is refused without one.

    Raises:
        UsageError: naming the back-end that it runs on.
    """
    backend = backend or running_backend()
    if backend is not None and backend not in record.backends:
        runs_on = " and ".join(record.backends)
        raise UsageError(
            f"{record.name!r} runs on {runs_on} only, and the back-end is {backend}: use --async-backend "
            f"{record.backends[0]} (or PROCTOR_ASYNC_BACKEND={record.backends[0]})."
        )
