"""Makes a sample's containers and takes them away."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import Any

import anyio
from anyio import to_thread

from proctor.contracts import RunningSandbox, SandboxDriver, SandboxEnvironment
from proctor.sandbox import sandbox_owner
from proctor_sandbox_docker._box import DockerSandbox
from proctor_sandbox_docker._config import read
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._images import Images
from proctor_sandbox_docker._left import list_left, remove_left
from proctor_sandbox_docker._made import PROJECT, Made
from proctor_sandbox_docker._networks import Networks
from proctor_sandbox_docker._services import start_project
from proctor_sandbox_docker.compose import ProjectSpec, project_risks

__all__ = ["DockerDriver"]

_log = logging.getLogger("proctor.sandbox")


class DockerDriver(SandboxDriver):
    """Makes sandboxes in containers.

    Args:
        engine: that they are made in; by default the one that the command line of Docker would use.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()
        self.images = Images(self.engine)
        self.networks = Networks(self.engine)
        self._made: dict[str, Made] = {}
        self._told: set[str] = set()

    async def check(self, config: Any) -> None:
        """Refuse a configuration that makes no sense, and an engine that does not answer."""
        await self._read(config, None)
        await self.engine.open()

    async def _read(self, config: Any, metadata: dict[str, Any] | None) -> ProjectSpec:
        return await to_thread.run_sync(read, config, metadata)

    async def task_init(self, task: str, config: Any) -> None:
        """Have the images that do not hang on a sample, and tell what its containers can reach of this machine."""
        project = await self._read(config, None)
        await self.engine.open()
        for risk in project_risks(project):
            if risk not in self._told:
                self._told.add(risk)
                _log.warning("docker: %s", risk)
        await self.images.prepare(project)

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """Start the containers of a sample."""
        project = await self._read(config, metadata)
        await self.engine.open()
        token = secrets.token_hex(8)
        made = Made(token, {**sandbox_owner().labels(), PROJECT: token})
        self._made[token] = made
        try:
            running = await start_project(self.engine, self.images, self.networks, project, made)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._take_away(made)
            raise
        return {name: DockerSandbox(self.engine, each, token) for name, each in running.items()}

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """Remove all that the sample had."""
        tokens = {each.project for each in envs.values() if isinstance(each, DockerSandbox)}
        for made in [self._made[token] for token in tokens if token in self._made]:
            await self._take_away(made)

    async def _take_away(self, made: Made) -> None:
        await made.remove(self.engine)
        self.networks.gone(made.project)
        self._made.pop(made.project, None)

    async def sandboxes(self) -> list[RunningSandbox]:
        """Containers, networks and volumes with labels of ours."""
        await self.engine.open()
        return await list_left(self.engine)

    async def remove(self, ids: Sequence[str]) -> list[str]:
        """Remove them, whoever's they are."""
        await self.engine.open()
        return await remove_left(self.engine, ids)
