"""What this package offers: sandboxes in containers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.contracts import SandboxProvider
from proctor.hookspecs import hookimpl

if TYPE_CHECKING:
    from proctor.contracts import SandboxDriver


def _make() -> SandboxDriver:
    from proctor_sandbox_docker._driver import DockerDriver

    return DockerDriver()


@hookimpl
def proctor_sandbox_providers() -> Sequence[SandboxProvider]:
    """One provider, for every engine that speaks Docker's API."""
    return [
        SandboxProvider(
            name="docker",
            factory=_make,
            default_max_sandboxes=lambda cpus: 2 * cpus,
            default_max_execs=lambda cpus: 4 * cpus,
            config_files=("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "Dockerfile"),
            summary="containers of Docker or Podman: --sandbox docker, docker:compose.yaml, docker:Dockerfile",
        )
    ]
