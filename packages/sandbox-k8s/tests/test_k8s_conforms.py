"""Pods pass the suite that all sandboxes run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from docker_engine import IMAGE

from proctor.contracts import SandboxEnvironment
from proctor_sandbox_k8s._driver import KubernetesDriver
from proctor_sandbox_k8s._sandbox import KubernetesSandbox
from proctor_sandbox_k8s._threads import Threads
from proctor_testkit import FakeKubernetes, SandboxSuite

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kube") / "config"


class TestProcesses(SandboxSuite):
    """Pods that are processes of this machine: a pod for each check."""

    provider = "k8s"
    config = "an-image"
    # Not users: who runs the tests may be anyone.
    capabilities = frozenset({"list", "named", "reap", "sessions", "vanish"})
    services = {"image": "a", "services": {"other": {"image": "b", "command": ["sleep", "600"]}}}
    patience = 1.0

    @pytest.fixture(autouse=True)
    def _cluster(self, suite_cluster: FakeKubernetes, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the environment, so that other processes find it, too."""
        monkeypatch.setenv("KUBECONFIG", str(suite_cluster.kubeconfig(kubeconfig)))


@pytest.fixture(scope="session")
def container(docker_cluster: FakeKubernetes, kubeconfig: Path) -> Iterator[KubernetesSandbox]:
    """A pod that many checks share, each in a folder of its own: to start a container for each takes minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(docker_cluster.kubeconfig(kubeconfig)))
        driver = KubernetesDriver()
        envs = anyio.run(driver.sample_init, "shared", IMAGE, {})
        [box] = envs.values()
        assert isinstance(box, KubernetesSandbox)
        yield box
        anyio.run(driver.sample_cleanup, envs, False)
        anyio.run(driver.task_cleanup, "shared", IMAGE, True)


@pytest.mark.slow
class TestContainers(SandboxSuite):
    """Pods of real containers, with BusyBox for a shell."""

    provider = "k8s"
    config = IMAGE
    capabilities = frozenset({"list", "named", "reap", "sessions", "users", "vanish"})
    services = {"image": IMAGE, "services": {"other": {"image": IMAGE, "command": ["sleep", "600"]}}}

    @pytest.fixture
    def anyio_backend(self) -> str:
        """One: what differs is what the pods are, and both back-ends run with processes."""
        return "asyncio"

    @pytest.fixture(autouse=True)
    def _cluster(self, docker_cluster: FakeKubernetes, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBECONFIG", str(docker_cluster.kubeconfig(kubeconfig)))

    @pytest.fixture
    async def box(self, container: KubernetesSandbox) -> SandboxEnvironment:
        directory = f"{container.directory}/{next(_numbers)}"
        made = KubernetesSandbox(container.target, directory, Threads())
        await made.exec(["mkdir", "-p", directory], cwd="/")
        return made
