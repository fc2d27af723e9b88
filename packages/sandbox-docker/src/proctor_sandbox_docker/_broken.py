"""What to say of a container that is not well: its state, as the engine has it, and what it printed last."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
from docker.errors import APIError, NotFound

from proctor.contracts import SandboxBrokenError
from proctor_sandbox_docker._engine import Engine

__all__ = ["container_broke", "describe_state", "state_of"]

_SECONDS = 5.0
_LINES = 20


async def container_broke(engine: Engine, container: str, message: str) -> SandboxBrokenError:
    """The error that says what became of a container; made also where the engine does not answer."""
    state, logs = "not known: the engine does not answer", ""
    with suppress(SandboxBrokenError, APIError):
        found = await state_of(engine, container)
        state = "gone: there is no such container" if found is None else describe_state(found)
        if found is not None:
            logs = await _logs(engine, container)
    return SandboxBrokenError(message, state=state, logs=logs)


async def state_of(engine: Engine, container: str) -> dict[str, Any] | None:
    """What the engine says of the container's state; ``None`` when there is no such container.

    Raises:
        SandboxBrokenError: the engine does not answer.
    """
    try:
        found = await engine.call(
            "look at a container", lambda client: client.inspect_container(container), seconds=_SECONDS
        )
    except NotFound:
        return None
    state: dict[str, Any] = found["State"]
    return state


def describe_state(state: dict[str, Any]) -> str:
    """A container's state for people: ``exited (137), out of memory``."""
    text = str(state.get("Status") or "not known")
    if text in ("exited", "dead", "stopped"):
        text += f" ({state.get('ExitCode')})"
    if state.get("OOMKilled"):
        text += ", out of memory"
    return text + (f", {state['Error']}" if state.get("Error") else "")


async def _logs(engine: Engine, container: str) -> str:
    with anyio.move_on_after(_SECONDS), suppress(SandboxBrokenError, APIError):
        said: bytes = await engine.call("read a log", lambda client: client.logs(container, tail=_LINES))
        return said.decode("utf-8", "replace")[-4000:]
    return ""
