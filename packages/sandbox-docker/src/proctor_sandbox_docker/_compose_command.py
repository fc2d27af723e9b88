"""Compose files that say more than is read here: ``docker compose`` runs them as they are, if it is installed."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import yaml

from proctor.contracts import SandboxBrokenError, UsageError
from proctor.monitor import doing
from proctor_sandbox_docker._box import Container
from proctor_sandbox_docker._container import container_of
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._made import Made
from proctor_sandbox_docker._services import READY_SECONDS
from proctor_sandbox_docker._watch import Watch
from proctor_sandbox_docker.compose import Given, ProjectSpec, read_compose

__all__ = ["ComposeRun", "find_compose"]

_log = logging.getLogger("proctor.sandbox")
_PROJECT = "com.docker.compose.project"
_SERVICE = "com.docker.compose.service"
_SECONDS = 60.0
_LINES = 20


def find_compose() -> tuple[str, ...] | None:
    """The command that runs compose files; ``None`` if there is none. Blocks."""
    if shutil.which("docker") is not None:
        found = subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=_SECONDS)
        if found.returncode == 0:
            return ("docker", "compose")
    return ("docker-compose",) if shutil.which("docker-compose") is not None else None


@dataclass(frozen=True)
class ComposeRun:
    """One sample's project, run by ``docker compose``.

    Args:
        command: of compose.
        engine: that it is to use.
        file: the compose file.
        variables: for its variables, such as a sample's metadata; those of this process are there anyway.
        allowed: dangerous things that are allowed.
    """

    command: Sequence[str]
    engine: Engine
    file: Path
    variables: Mapping[str, str]
    allowed: frozenset[str]

    async def project(self) -> ProjectSpec:
        """What the file asks for, as far as it is understood here: services, the default one, and risks.

        Raises:
            UsageError: compose does not understand it either, or it asks for something dangerous.
        """
        return self._read(await self._config())

    def _read(self, config: Mapping[str, Any]) -> ProjectSpec:
        given = Given(lambda name: None, allowed=self.allowed, lenient=True)
        return read_compose(config, self.file.parent, given, name=str(self.file))

    async def _config(self) -> dict[str, Any]:
        text = await self._run("check", ["config"], _SECONDS, UsageError)
        found = yaml.safe_load(text)
        if not isinstance(found, dict):
            raise UsageError(f"{self.file}: `{' '.join(self.command)} config` gave no services")
        return found

    async def up(self, made: Made) -> dict[str, Container]:
        """Start it, and wait until it is ready; what there is is noted in ``made``, whatever happens.

        Returns:
            The containers that run, by their services; the default one first.

        Raises:
            SandboxBrokenError: a service can't start, ends or is not well.
            UsageError: as for ``project``.
        """
        config = await self._config()
        project = self._read(config)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as labels:
            yaml.safe_dump(_labelled(config, made.labels), labels)
            labels.flush()
            try:
                with doing("sandbox", f"{' '.join(self.command)} up"):
                    await self._run(made.project, ["up", "-d"], READY_SECONDS, SandboxBrokenError, labels.name)
            finally:
                with anyio.CancelScope(shield=True):
                    containers = await self._note(made)
        watch = Watch(self.engine, project.default, containers)
        running = {name: each for name, each in containers.items() if await watch.settled(name)}
        first = [project.default, *(name for name in running if name != project.default)]
        return {name: running[name] for name in first}

    async def down(self, project: str) -> None:
        """Take it away, with the images that were built for it alone; what remains is for the engine to remove."""
        try:
            await self._run(project, ["down", "--volumes", "--rmi", "local", "-t", "1"], _SECONDS, SandboxBrokenError)
        except SandboxBrokenError as error:
            _log.warning("docker: %s", error)

    async def _note(self, made: Made) -> dict[str, Container]:
        wanted = {"label": f"{_PROJECT}={_name(made.project)}"}
        found = await self.engine.call(
            "list a project",
            lambda client: (
                [client.inspect_container(each["Id"]) for each in client.containers(all=True, filters=wanted)],
                [each["Id"] for each in client.networks(filters=wanted)],
                [each["Name"] for each in client.volumes(filters=wanted).get("Volumes") or ()],
            ),
        )
        containers = [container_of(each, each["Config"]["Labels"][_SERVICE]) for each in found[0]]
        made.containers += containers
        made.networks += found[1]
        made.volumes += found[2]
        return {each.service: each for each in containers}

    async def _run(
        self, project: str, arguments: Sequence[str], seconds: float, failure: type[Exception], more: str | None = None
    ) -> str:
        files = ["-f", str(self.file), *(() if more is None else ("-f", more))]
        folder = str(self.file.parent)
        command = [*self.command, "-p", _name(project), *files, "--project-directory", folder, *arguments]
        variables = {name: value for name, value in self.variables.items() if "\0" not in name + value}
        environment = {**os.environ, **variables, "DOCKER_HOST": self.engine.address.url}
        try:
            with anyio.fail_after(seconds):
                done = await anyio.run_process(command, env=environment, check=False)
        except TimeoutError:
            raise failure(f"{self.file}: `{' '.join(command)}` had not ended after {seconds:g} s") from None
        if done.returncode != 0:
            said = "\n".join(done.stderr.decode("utf-8", "replace").splitlines()[-_LINES:])
            what = " ".join([*self.command, *arguments])
            raise failure(f"{self.file}: `{what}` failed with exit code {done.returncode}: {said}")
        return done.stdout.decode("utf-8", "replace")


def _name(project: str) -> str:
    return f"proctor-{project}"


def _labelled(config: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """A file that adds ``labels`` to all that ``config`` makes."""
    found: dict[str, Any] = {}
    if "version" in config:  # older versions of compose want it to be the same in all files
        found["version"] = config["version"]
    own = {key: value.replace("$", "$$") for key, value in labels.items()}
    for part in ("services", "networks", "volumes"):
        entries = config.get(part) or {}
        made = [name for name, value in entries.items() if not (value or {}).get("external")]
        if made:
            found[part] = {name: {"labels": own} for name in made}
    if "default" not in (config.get("networks") or {}):
        found.setdefault("networks", {})["default"] = {"labels": own}
    return found
