"""What a sample has in the engine, and how it is taken away again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from docker import APIClient
from docker.errors import APIError, NotFound

from proctor.contracts import SandboxBrokenError, SandboxOwner
from proctor_sandbox_docker._box import Container
from proctor_sandbox_docker._engine import Engine, unwell

__all__ = ["PROJECT", "READY", "Made", "remove_container", "remove_network", "remove_volume"]

PROJECT = "proctor.project"
"""The label of all that one sample has."""
READY = "proctor.ready"
"""The label of what was made before its sample was known, which its name tells then."""
_REMOVE_SECONDS = 45.0


@dataclass(slots=True)
class Made:
    """What was made for one sample.

    Args:
        project: that it has as the label ``PROJECT``.
        owner: whose it is.
        labels: that all of it has.
    """

    project: str
    owner: SandboxOwner
    labels: Mapping[str, str]
    containers: list[Container] = field(default_factory=list)
    networks: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, owner: SandboxOwner, ready: bool = False) -> Made:
        """Nothing yet, of a project of its own; ``ready``: it is made before its sample is known."""
        project = secrets.token_hex(8)
        more = {READY: "yes"} if ready else {}
        return cls(project, owner, {**owner.labels(), PROJECT: project, **more})

    async def remove(self, engine: Engine) -> None:
        """Take all of it away; returns when it is gone.

        Raises:
            SandboxBrokenError: something is still there.
        """
        failed: list[Exception] = []

        async def gone(id: str) -> None:
            try:
                await remove_container(engine, id)
            except Exception as error:
                failed.append(error)

        async with anyio.create_task_group() as group:
            for container in self.containers:
                group.start_soon(gone, container.id)
        for remove, names in ((remove_network, self.networks), (remove_volume, self.volumes)):
            for name in names:
                try:
                    await remove(engine, name)
                except Exception as error:
                    failed.append(error)
        if failed:
            raise failed[0]
        self.containers.clear()
        self.networks.clear()
        self.volumes.clear()


async def remove_container(engine: Engine, id: str) -> bool:
    """Kill and remove a container with its anonymous volumes; whether it was there.

    Raises:
        SandboxBrokenError: it is still there.
    """
    return await engine.call("remove a container", lambda client: _remove(client, id), seconds=_REMOVE_SECONDS)


def _remove(client: APIClient, id: str) -> bool:
    """Blocks until the container is gone; the engine may be at it already, for somebody else."""
    was_there, pause, end = False, 0.02, time.monotonic() + _REMOVE_SECONDS
    while True:
        try:
            client.remove_container(id, force=True, v=True)
            return True
        except NotFound:
            return was_there
        except APIError as error:
            # 409: its removal goes on. 500: what it held open was not let go yet, as happens under load.
            if time.monotonic() > end or not (error.status_code == 409 or unwell(error)):
                raise
        was_there = True
        time.sleep(pause)
        pause = min(pause * 2, 1.0)


async def remove_network(engine: Engine, id: str) -> bool:
    """Remove a network; whether it was there."""

    def remove(client: APIClient) -> bool:
        try:
            client.remove_network(id)
        except NotFound:
            return False
        except APIError:  # a container that is going away still has an end in it
            for end in client.inspect_network(id).get("Containers") or ():
                with suppress(APIError):
                    client.disconnect_container_from_network(end, id, force=True)
            client.remove_network(id)
        return True

    return await _plain(engine, f"remove network {id}", remove)


async def remove_volume(engine: Engine, name: str) -> bool:
    """Remove a volume; whether it was there."""

    def remove(client: APIClient) -> bool:
        try:
            client.remove_volume(name, force=True)
        except NotFound:
            return False
        return True

    return await _plain(engine, f"remove volume {name}", remove)


async def _plain(engine: Engine, what: str, work: object) -> bool:
    try:
        return bool(await engine.call(what, work))  # type: ignore[arg-type]  # a function of the client
    except APIError as error:
        raise SandboxBrokenError(f"Docker: {what}: {error.explanation or error}") from error
