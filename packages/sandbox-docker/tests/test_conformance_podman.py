"""What every sandbox must do, by containers of a real Podman, whose service speaks Docker's API nearly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, ClassVar

import docker
import pytest
from docker.errors import DockerException
from shared_container import folder_in, shared_container

from proctor.contracts import SandboxEnvironment
from proctor_sandbox_docker._address import Address
from proctor_sandbox_docker._box import Container
from proctor_sandbox_docker._engine import Engine
from proctor_testkit import SandboxSuite

IMAGE = "proctor-busybox:latest"


@pytest.fixture(scope="module")
def podman() -> Address:
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
    return Address(url, "CONTAINER_HOST")


@pytest.fixture(scope="module")
def container(podman: Address) -> Iterator[Container]:
    """One that most checks share: Podman runs four programs to start one."""
    with shared_container(Engine(podman)) as made:
        yield made


@pytest.mark.slow  # a service that starts a program for each container and each command
class TestPodman(SandboxSuite):
    provider = "docker"
    config = IMAGE
    services: ClassVar[Any] = {"services": {key: {"image": IMAGE, "command": "sleep 600"} for key in ("a", "b")}}
    capabilities = frozenset({"users", "reap", "list", "vanish", "sessions", "named"})

    @pytest.fixture
    def anyio_backend(self) -> str:
        """One: what differs is the engine, and both back-ends run with Docker's."""
        return "asyncio"

    @pytest.fixture(autouse=True)
    def _engine(self, podman: Address, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the environment, so that other processes find it, too."""
        monkeypatch.setenv("DOCKER_HOST", podman.url)

    @pytest.fixture
    async def box(self, container: Container) -> SandboxEnvironment:
        return await folder_in(container, Engine())
