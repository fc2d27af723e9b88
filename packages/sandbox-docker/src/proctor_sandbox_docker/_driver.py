"""Makes a sample's containers and takes them away."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import anyio
from docker.errors import APIError

from proctor.contracts import RunningSandbox, SandboxBrokenError, SandboxDriver, SandboxEnvironment
from proctor.sandbox import sandbox_owner
from proctor_sandbox_docker._box import DockerSandbox
from proctor_sandbox_docker._container import Place, container_name, create_and_start
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._left import list_left, remove_left
from proctor_sandbox_docker._made import PROJECT, Made
from proctor_sandbox_docker._spec import ProjectSpec, ServiceSpec

__all__ = ["DockerDriver"]


class DockerDriver(SandboxDriver):
    """Makes sandboxes in containers.

    Args:
        engine: that they are made in; by default the one that the command line of Docker would use.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()
        self._made: dict[str, Made] = {}

    async def check(self, config: Any) -> None:
        """Refuse a configuration that makes no sense, and an engine that does not answer."""
        self._read(config, None)
        await self.engine.open()

    def _read(self, config: Any, metadata: dict[str, Any] | None) -> ProjectSpec:
        image = config["image"] if isinstance(config, dict) else config
        service = ServiceSpec(name="default", image=image or "proctor-busybox:latest", keep_alive=True)
        return ProjectSpec(services=(service,), default="default")

    async def task_init(self, task: str, config: Any) -> None:
        """Ask whether the engine is there."""
        await self.check(config)

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """Start the containers of a sample."""
        project = self._read(config, metadata)
        token = secrets.token_hex(8)
        made = Made(token, {**sandbox_owner().labels(), PROJECT: token})
        self._made[token] = made
        try:
            await self._start(project, made)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._take_away(made)
            raise
        first = [each for each in made.containers if each.service == project.default]
        rest = [each for each in made.containers if each.service != project.default]
        return {each.service: DockerSandbox(self.engine, each, token) for each in [*first, *rest]}

    async def _start(self, project: ProjectSpec, made: Made) -> None:
        [service] = project.services
        name = container_name(sandbox_owner(), service.name)
        async with self.engine.starting:
            try:
                made.containers.append(await create_and_start(self.engine, service, name, made.labels, Place()))
            except APIError as error:
                raise SandboxBrokenError(
                    f"Docker: service {service.name} did not start: {error.explanation or error}"
                ) from error

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """Remove all that the sample had."""
        tokens = {each.project for each in envs.values() if isinstance(each, DockerSandbox)}
        for made in [self._made[token] for token in tokens if token in self._made]:
            await self._take_away(made)

    async def _take_away(self, made: Made) -> None:
        await made.remove(self.engine)
        self._made.pop(made.project, None)

    async def sandboxes(self) -> list[RunningSandbox]:
        """Containers, networks and volumes with labels of ours."""
        await self.engine.open()
        return await list_left(self.engine)

    async def remove(self, ids: Sequence[str]) -> list[str]:
        """Remove them, whoever's they are."""
        await self.engine.open()
        return await remove_left(self.engine, ids)
