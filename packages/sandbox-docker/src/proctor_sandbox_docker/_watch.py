"""What becomes of services that were started: ready, at work, ended, broken."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import anyio

from proctor.contracts import SandboxBrokenError
from proctor.monitor import doing
from proctor_sandbox_docker._box import Container
from proctor_sandbox_docker._broken import container_broke, describe_state, state_of
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker.compose import StartCondition

__all__ = ["Watch"]

_log = logging.getLogger("proctor.sandbox")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Watch:
    """Waits for the services of one sample.

    Args:
        engine: that has them.
        default: the service in which commands are to run.
        containers: by service; may grow.
    """

    def __init__(self, engine: Engine, default: str, containers: Mapping[str, Container]) -> None:
        self._engine = engine
        self._default = default
        self._containers = containers

    async def reached(self, name: str, condition: StartCondition, why: str = "") -> None:
        """Wait until a service that was started is as far as ``condition``."""
        if condition == "service_started":
            return
        pause = _FIRST_PAUSE
        what = "be healthy" if condition == "service_healthy" else "end"
        with doing("sandbox", f"wait for {name} to {what}"):
            while not await self._is(name, condition, why):
                await anyio.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def _is(self, name: str, condition: StartCondition, why: str) -> bool:
        state = await self._state(name)
        ended = _has_ended(state)
        if condition == "service_completed_successfully":
            if ended and state["ExitCode"] != 0:
                raise await self._broke(name, f"ended with exit code {state['ExitCode']}{why}")
            return ended
        if ended:
            raise await self._broke(name, f"ended before it was healthy{why}")
        health = state.get("Health")
        if not health:
            raise await self._broke(name, f"has no health check, nor has its image{why}")
        if health["Status"] == "unhealthy":
            raise await self._broke(name, f"is not healthy{why}: {_last_check(health)}")
        return bool(health["Status"] == "healthy")

    async def settled(self, name: str) -> bool:
        """Wait until a started service is there for good; whether it goes on, and has not done its work and ended."""
        state = await self._state(name)
        if (state.get("Health") or {}).get("Status") in ("starting", "unhealthy"):
            await self.reached(name, "service_healthy")
            return True
        if not _has_ended(state):
            return True
        if state["ExitCode"] != 0:
            raise await self._broke(name, f"ended with exit code {state['ExitCode']} while it was started")
        if name == self._default:
            raise await self._broke(
                name,
                "ended at once, but commands are to run in it: give it a command that goes on, "
                "such as `command: sleep infinity`",
            )
        _log.debug("docker: service %s has ended: %s", name, describe_state(dict(state)))
        return False

    async def _state(self, name: str) -> Mapping[str, Any]:
        state = await state_of(self._engine, self._containers[name].id)
        if state is None:
            raise await self._broke(name, "is gone: somebody removed its container")
        return state

    async def _broke(self, name: str, what: str) -> SandboxBrokenError:
        return await container_broke(self._engine, self._containers[name].id, f"Docker: service {name!r} {what}")


def _has_ended(state: Mapping[str, Any]) -> bool:
    return state.get("Status") in ("exited", "dead", "stopped", "removing")


def _last_check(health: Mapping[str, Any]) -> str:
    checks = health.get("Log") or []
    if not checks:
        return "its check has not run"
    said = str(checks[-1].get("Output") or "").strip()
    return f"its check ended with {checks[-1].get('ExitCode')}" + (f" and said {said[-500:]!r}" if said else "")
