"""Makes a sample's containers and takes them away."""

from __future__ import annotations

from typing import Any

from proctor.contracts import SandboxDriver, SandboxEnvironment

__all__ = ["DockerDriver"]


class DockerDriver(SandboxDriver):
    """Makes sandboxes in containers."""

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """Start the containers of a sample."""
        raise NotImplementedError("the lifecycle of containers lands next")

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """Remove the containers of a sample."""
