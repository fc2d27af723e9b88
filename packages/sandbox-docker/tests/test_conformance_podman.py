"""What every sandbox must do, by containers of a real Podman, whose service speaks Docker's API nearly."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import docker
import pytest
from docker.errors import DockerException

from proctor_testkit import SandboxSuite

IMAGE = "proctor-busybox:latest"


@pytest.fixture
def podman(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service that `tests/services/podman.sh start` made; CONTAINER_HOST names it, as for Podman's own client."""
    url = os.environ.get("CONTAINER_HOST")
    if not url:
        pytest.skip("no Podman: CONTAINER_HOST is not set (`tests/services/podman.sh start` prints the address)")
    try:
        client = docker.APIClient(base_url=url, version="auto", timeout=60)
        client.inspect_image(IMAGE)
    except DockerException as error:
        pytest.skip(f"no Podman with the image {IMAGE} answers at CONTAINER_HOST={url}: {error}")
    client.close()
    monkeypatch.setenv("DOCKER_HOST", url)


@pytest.mark.slow  # a service that starts a program for each container and each command
@pytest.mark.usefixtures("podman")
class TestPodman(SandboxSuite):
    provider = "docker"
    config = IMAGE
    services: ClassVar[Any] = {"services": {key: {"image": IMAGE, "command": "sleep 600"} for key in ("a", "b")}}
    capabilities = frozenset({"users", "reap", "list", "vanish", "sessions", "named"})

    @pytest.fixture
    def anyio_backend(self) -> str:
        """One: what differs is the engine, and both back-ends run with Docker's."""
        return "asyncio"
