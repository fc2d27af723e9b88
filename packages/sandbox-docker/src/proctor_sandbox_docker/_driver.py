"""Makes a sample's containers and takes them away."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from proctor.contracts import RunningSandbox, SandboxBrokenError, SandboxDriver, SandboxEnvironment
from proctor.sandbox import sandbox_owner
from proctor_sandbox_docker._box import Container, DockerSandbox
from proctor_sandbox_docker._compose_command import ComposeRun, find_compose
from proctor_sandbox_docker._config import METADATA, asks_for_metadata, compose_file, metadata_variables, read
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._images import Images
from proctor_sandbox_docker._left import list_left, remove_left
from proctor_sandbox_docker._made import Made
from proctor_sandbox_docker._networks import Networks
from proctor_sandbox_docker._services import start_project
from proctor_sandbox_docker._warm import LEFT, WARM, WarmPool, warm_size, why_not_warm
from proctor_sandbox_docker.compose import ALLOW, ProjectSpec, UnsupportedKeyError, allowed_risks, project_risks

__all__ = ["DockerDriver"]

_log = logging.getLogger("proctor.sandbox")
_SETTLE_SECONDS = 5.0


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
        self._composed: dict[str, ComposeRun] = {}
        self._compose: tuple[str, ...] | None = None
        self._told: set[str] = set()
        self._start_project = partial(start_project, self.engine, self.images, self.networks)
        self._warm = WarmPool(self.engine, self._start_project, self._tell)

    async def check(self, config: Any) -> None:
        """Refuse a configuration that makes no sense, and an engine that does not answer."""
        warm_size(os.environ.get(WARM, ""))
        plan = await self._plan(config, None)
        await self.engine.open()
        if isinstance(plan, ComposeRun):
            await plan.project()

    async def _plan(self, config: Any, metadata: dict[str, Any] | None) -> ProjectSpec | ComposeRun:
        """What ``config`` asks for; what is not understood here is for ``docker compose`` to run, if it is there."""
        try:
            return await to_thread.run_sync(read, config, metadata)
        except UnsupportedKeyError as error:
            file = compose_file(config)
            if file is None:
                raise
            if self._compose is None:
                self._compose = await to_thread.run_sync(find_compose) or ()
            if not self._compose:
                hint = "`docker compose` would run the file as it is: install it, or leave the key out"
                raise UnsupportedKeyError(f"{error} ({hint})") from None
            self._tell(f"the file is run as it is by `{' '.join(self._compose)}`: {error}")
        variables = metadata_variables(metadata or {})
        allowed = allowed_risks(os.environ.get(ALLOW, ""))
        return ComposeRun(self._compose, self.engine, file.absolute(), variables, allowed)

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            _log.warning("docker: %s", text)

    async def task_init(self, task: str, config: Any) -> None:
        """Have the images that do not hang on a sample, and tell what its containers can reach of this machine."""
        plan = await self._plan(config, None)
        await self.engine.open()
        project = await plan.project() if isinstance(plan, ComposeRun) else plan
        for risk in project_risks(project):
            self._tell(risk)
        if plan is project:
            await self.images.prepare(project)
        if size := warm_size(os.environ.get(WARM, "")):
            if why := await self._why_not_warm(plan, config):
                self._tell(f"{WARM}={size} has no effect on task {task!r}: {why}")
            else:
                self._warm.keep(task, project, size)

    async def _why_not_warm(self, plan: ProjectSpec | ComposeRun, config: Any) -> str:
        if isinstance(plan, ComposeRun):
            return "`docker compose` starts its samples"
        if sandbox_owner().keep:
            return "what is kept after the run (--no-sandbox-cleanup) is to say for whom it was made"
        if await to_thread.run_sync(asks_for_metadata, config):
            return f"its configuration hangs on each sample's metadata ({METADATA}...)"
        return why_not_warm(plan)

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """Start the containers of a sample."""
        plan = await self._plan(config, metadata)
        await self.engine.open()
        if (ready := await self._warm.take(task, plan)) is not None:
            made, running = ready
            self._made[made.project] = made
        else:
            made, running = await self._start(plan)
        self._warm.fill(task, plan)
        return {name: DockerSandbox(self.engine, each, made.project) for name, each in running.items()}

    async def _start(self, plan: ProjectSpec | ComposeRun) -> tuple[Made, dict[str, Container]]:
        made = Made.begin(sandbox_owner())
        self._made[made.project] = made
        try:
            if isinstance(plan, ComposeRun):
                self._composed[made.project] = plan
                running = await plan.up(made)
            else:
                running = await self._start_project(plan, made)
        except BaseException:
            with anyio.CancelScope(shield=True):
                try:
                    await self._take_away(made)
                except SandboxBrokenError as error:  # why it did not start is what matters
                    _log.warning("docker: of a sample that did not start something is left: %s", error)
            raise
        return made, running

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """Remove all that the sample had."""
        tokens = {each.project for each in envs.values() if isinstance(each, DockerSandbox)}
        for made in [self._made[token] for token in tokens if token in self._made]:
            await self._take_away(made)

    async def _take_away(self, made: Made) -> None:
        if (composed := self._composed.pop(made.project, None)) is not None:
            await composed.down(made.project)
        try:
            await made.remove(self.engine)
        finally:
            self.networks.gone(made.project)
        self._made.pop(made.project, None)

    async def task_cleanup(self, task: str, config: Any, cleanup: bool) -> None:
        """Remove what is kept ready, and wait for what was being started when somebody cancelled it."""
        await self._warm.close(task)
        if not await self.engine.settle(_SETTLE_SECONDS):
            _log.warning("docker: the engine still starts what samples wanted that were cancelled: %s", LEFT)

    async def sandboxes(self) -> list[RunningSandbox]:
        """Containers, networks and volumes with labels of ours."""
        await self.engine.open()
        return await list_left(self.engine)

    async def remove(self, ids: Sequence[str]) -> list[str]:
        """Remove them, whoever's they are."""
        await self.engine.open()
        return await remove_left(self.engine, ids)
