"""A real engine, and what of it is the tests' own."""

from __future__ import annotations

import pytest

from proctor.contracts import PrerequisiteError
from proctor_sandbox_docker._address import Address, find_address

IMAGE = "proctor-busybox:latest"


@pytest.fixture(scope="session")
def engine_address() -> Address:
    """Of the engine that `tests/services/docker.sh start` made, or of another that has its image."""
    import docker
    from docker.errors import DockerException

    try:
        address = find_address()
        client = docker.APIClient(base_url=address.url, version="auto", timeout=60)
        client.inspect_image(IMAGE)
    except (PrerequisiteError, DockerException) as error:
        pytest.skip(f"no engine with the image {IMAGE} (`tests/services/docker.sh start`, DOCKER_HOST): {error}")
    client.close()
    return address
