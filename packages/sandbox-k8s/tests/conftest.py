"""A Kubernetes on loopback, and the kubeconfig that leads to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest
from docker_engine import DockerEngine, docker_engine
from kubectl import kubectl_path

from proctor_testkit import FakeKubernetes

__all__ = ["docker_engine", "kubectl_path"]

NAMESPACE = "evals"


@pytest.fixture
def until() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Waits until something outside of this loop has happened."""

    async def wait(happened: Callable[[], object]) -> None:
        with anyio.fail_after(200):
            while not happened():  # noqa: ASYNC110  # what happens elsewhere sets no event here
                await anyio.sleep(0.02)

    return wait


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[FakeKubernetes]:
    """One whose pods are processes of this machine; its faults are for those who use ``cluster``."""
    with FakeKubernetes("processes", namespace=NAMESPACE) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def suite_cluster() -> Iterator[FakeKubernetes]:
    """The same for the suite, whose checks leave what the end of a run would take away."""
    with FakeKubernetes("processes", namespace=NAMESPACE) as cluster:
        yield cluster


@pytest.fixture
def cluster(
    shared_cluster: FakeKubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeKubernetes]:
    """A cluster without pods, and without faults."""
    monkeypatch.setenv("KUBECONFIG", str(shared_cluster.kubeconfig(tmp_path / "kubeconfig")))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    shared_cluster.requests.clear()
    yield shared_cluster
    shared_cluster.clear()
    assert shared_cluster.objects("pods") == [], "a test leaves no pods"
    assert shared_cluster.objects("networkpolicies") == [], "a test leaves no network policies"


@pytest.fixture(scope="session")
def docker_cluster(docker_engine: DockerEngine) -> Iterator[FakeKubernetes]:
    """One whose pods are real containers."""
    with FakeKubernetes("docker", namespace=NAMESPACE, docker_host=docker_engine.environment["DOCKER_HOST"]) as cluster:
        yield cluster
