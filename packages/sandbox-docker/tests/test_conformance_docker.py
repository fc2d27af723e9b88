"""What every sandbox must do, by containers of a real engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import pytest
from shared_container import folder_in, shared_container

from proctor.contracts import SandboxDriver, SandboxEnvironment
from proctor_sandbox_docker._address import Address
from proctor_sandbox_docker._box import Container
from proctor_sandbox_docker._engine import Engine
from proctor_testkit import SandboxSuite

IMAGE = "proctor-busybox:latest"


@pytest.fixture(scope="module")
def container(engine_address: Address) -> Iterator[Container]:
    with shared_container(Engine(engine_address)) as made:
        yield made


@pytest.mark.usefixtures("engine_address")
class TestDocker(SandboxSuite):
    provider = "docker"
    config = IMAGE
    services: ClassVar[Any] = {"services": {key: {"image": IMAGE, "command": "sleep 600"} for key in ("a", "b")}}
    capabilities = frozenset({"users", "reap", "list", "vanish", "sessions", "named"})

    @pytest.fixture
    async def box(
        self, container: Container, driver: SandboxDriver, anyio_backend_name: str
    ) -> AsyncIterator[SandboxEnvironment]:
        """On one of the back-ends a container for each check, on the other one for all of them."""
        if anyio_backend_name == "trio":
            yield await folder_in(container, Engine())
            return
        async with self.made(driver) as envs:
            yield next(iter(envs.values()))
