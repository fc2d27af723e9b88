"""Pods that do not start, that break while they run, and that do not go away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from proctor.contracts import SandboxBrokenError, SandboxEnvironment
from proctor_sandbox_k8s import _making, _pods, _removal
from proctor_sandbox_k8s._cluster import Cluster
from proctor_sandbox_k8s._driver import KubernetesDriver
from proctor_sandbox_k8s._pods import Pods
from proctor_testkit import FakeKubernetes

pytestmark = pytest.mark.anyio
Until = Callable[[Callable[[], object]], Awaitable[None]]


@asynccontextmanager
async def made(config: Any = "an-image", metadata: dict[str, Any] | None = None) -> Any:
    """The sandboxes of a sample, and the pod's name."""
    driver = KubernetesDriver()
    await driver.task_init("quiz", config)
    envs: dict[str, SandboxEnvironment] = {}
    try:
        envs = await driver.sample_init("quiz", config, metadata or {})
        yield envs
    finally:
        with anyio.CancelScope(shield=True):
            await driver.sample_cleanup(envs, True)
            await driver.task_cleanup("quiz", config, True)


def name_of(cluster: FakeKubernetes) -> str:
    [pod] = cluster.objects("pods")
    name: str = pod["metadata"]["name"]
    return name


# Starting


async def test_a_sample_is_one_pod_and_one_watch_and_no_polling(cluster: FakeKubernetes) -> None:
    async with made() as envs:
        await envs["default"].exec(["true"])

    kinds = [request.kind for request in cluster.requests]
    assert (kinds.count("create pods"), kinds.count("watch pods"), kinds.count("get pods")) == (1, 1, 0)


async def test_a_pod_that_is_made_while_the_watch_begins_is_not_taken_for_a_deleted_one(
    cluster: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a list from before the pod that is read when the pod is known, then the pod is there all the same."""
    listed, known = threading.Event(), threading.Event()
    request, note = Cluster.request, Pods.note

    def late(self: Cluster, method: str, path: str, *args: Any, **more: Any) -> Any:
        if method == "POST" and path.endswith("/pods"):
            assert listed.wait(60)
        answer = request(self, method, path, *args, **more)
        if threading.current_thread().name == "proctor-k8s-watch":
            listed.set()
            assert known.wait(60)
        return answer

    def noted(self: Pods, *args: Any, **more: Any) -> None:
        note(self, *args, **more)
        known.set()

    monkeypatch.setattr(Cluster, "request", late)
    monkeypatch.setattr(Pods, "note", noted)
    async with made() as envs:
        assert (await envs["default"].exec(["echo", "here"])).stdout == "here\n"


async def test_the_policy_is_there_before_the_pod_and_goes_after_it(cluster: FakeKubernetes) -> None:
    async with made():
        [policy] = cluster.objects("networkpolicies")
        [pod] = cluster.objects("pods")
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()

    kinds = [request.kind for request in cluster.requests]
    assert kinds.index("create networkpolicies") < kinds.index("create pods")
    assert kinds.index("delete pods") < kinds.index("delete networkpolicies")


async def test_services_are_sandboxes_of_their_own(cluster: FakeKubernetes) -> None:
    config = {
        "image": "a",
        "env": {"WHO": "default"},
        "services": {"web": {"image": "b", "command": ["sleep", "600"], "env": {"WHO": "web"}}},
    }

    async with made(config) as envs:
        said = {name: (await env.exec(["printenv", "WHO"])).stdout for name, env in envs.items()}

        assert said == {"default": "default\n", "web": "web\n"}
        assert len(cluster.objects("pods")) == 1


async def test_a_pod_that_finds_no_place_says_why(
    cluster: FakeKubernetes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_making, "_SHOWN", 0.1)
    cluster.unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")

    with pytest.raises(
        SandboxBrokenError, match=r"did not run after 1 s \(startTimeout\).*Insufficient nvidia"
    ) as raised:
        async with made({"image": "a", "startTimeout": 1}):
            raise AssertionError
    cluster.unschedulable("")

    assert "FailedScheduling" in raised.value.state
    assert "a sandbox waits in Kubernetes: Unschedulable: 0/3 nodes are available" in caplog.text
    assert cluster.objects("pods") == []


async def test_an_image_that_can_not_be_pulled_says_so(cluster: FakeKubernetes) -> None:
    cluster.lose_image("gone:1", "manifest unknown")

    with pytest.raises(SandboxBrokenError, match="manifest unknown"):
        async with made({"image": "gone:1", "startTimeout": 1}):
            raise AssertionError
    cluster.find_image("gone:1")


async def test_a_pod_that_finds_a_place_late_is_used(cluster: FakeKubernetes, until: Until) -> None:
    cluster.unschedulable("0/1 nodes are available: 1 Insufficient cpu.")

    async with anyio.create_task_group() as group:

        async def run() -> None:
            async with made() as envs:
                assert (await envs["default"].exec(["echo", "late"])).stdout == "late\n"

        group.start_soon(run)
        await until(lambda: cluster.objects("pods"))
        cluster.unschedulable("")


async def test_a_container_that_ends_at_once_is_an_error_with_its_log(cluster: FakeKubernetes) -> None:
    config = {"image": "a", "command": ["sh", "-c", "echo no licence; exit 3"]}

    with pytest.raises(SandboxBrokenError, match="its container default ended with exit code 3") as raised:
        async with made(config):
            raise AssertionError

    assert raised.value.logs == "no licence\n"


async def test_a_full_namespace_is_waited_for(
    cluster: FakeKubernetes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_making, "_ROOM", 0.05)
    _quota(cluster, 1)
    driver = KubernetesDriver()
    await driver.task_init("quiz", "an-image")
    now = most = 0

    async def sample() -> None:
        nonlocal now, most
        envs = await driver.sample_init("quiz", {"image": "a", "startTimeout": 100}, {})
        now += 1
        most = max(most, now)
        await envs["default"].exec(["true"])
        now -= 1
        await driver.sample_cleanup(envs, False)

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(sample)
    await driver.task_cleanup("quiz", "an-image", True)
    _quota(cluster, 1000)

    assert most == 1
    assert caplog.text.count("exceeded quota") == 1, "it is said once"


async def test_a_namespace_that_stays_full_is_an_error(
    cluster: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_making, "_ROOM", 0.05)
    _quota(cluster, 0)

    with pytest.raises(SandboxBrokenError, match=r"made for 0\.3 s \(startTimeout\): .* exceeded quota"):
        async with made({"image": "a", "startTimeout": 0.3}):
            raise AssertionError
    _quota(cluster, 1000)


async def test_a_reply_that_is_lost_makes_no_second_pod(cluster: FakeKubernetes) -> None:
    cluster.lose_reply(on="^create pods")

    async with made() as envs:
        assert (await envs["default"].exec(["echo", "one"])).stdout == "one\n"
        assert len(cluster.objects("pods")) == 1


async def test_a_sample_that_is_cancelled_while_it_starts_leaves_no_pod(cluster: FakeKubernetes, until: Until) -> None:
    cluster.hold_starts()

    async with anyio.create_task_group() as group:

        async def run() -> None:
            async with made():
                raise AssertionError

        group.start_soon(run)
        await until(lambda: cluster.objects("pods"))
        group.cancel_scope.cancel()
    cluster.release_starts()

    assert cluster.objects("pods") == []


# The watch


async def test_a_watch_that_is_cut_or_forgotten_goes_on(cluster: FakeKubernetes) -> None:
    cluster.hold_starts()

    async with anyio.create_task_group() as group:

        async def run() -> None:
            async with made() as envs:
                assert (await envs["default"].exec(["echo", "here"])).stdout == "here\n"

        group.start_soon(run)
        assert await anyio.to_thread.run_sync(cluster.wait, "^watch pods")
        cluster.expire_watches()
        assert await anyio.to_thread.run_sync(cluster.wait, "^watch pods", 2)
        cluster.release_starts()

    assert cluster.count("^list pods") >= 2, "after a version that is forgotten all are listed"


async def test_pods_are_asked_for_one_by_one_where_they_can_not_be_watched(
    cluster: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_pods, "_LOOK", 0.1)
    cluster.fail(403, "watch is forbidden", on="^watch pods", times=None, reason="Forbidden")
    cluster.hold_starts()

    async with anyio.create_task_group() as group:

        async def run() -> None:
            async with made() as envs:
                assert (await envs["default"].exec(["echo", "here"])).stdout == "here\n"

        group.start_soon(run)
        assert await anyio.to_thread.run_sync(cluster.wait, "^get pods", 2)
        cluster.release_starts()


# Breaking


async def test_what_becomes_of_a_pod_is_said(cluster: FakeKubernetes) -> None:
    troubles: dict[str, Callable[[str], None]] = {
        "it was evicted from its node: The node was low on resource: memory.": cluster.evict,
        "its container default ended with exit code": cluster.kill_container,
        "it was replaced by another pod of the same name": cluster.replace,
    }
    for said, trouble in troubles.items():
        async with made() as envs:
            trouble(name_of(cluster))

            with pytest.raises(SandboxBrokenError) as raised:
                await envs["default"].exec(["echo", "still here"])
            assert said in str(raised.value)
            for pod in cluster.objects("pods"):  # a replaced one is somebody else's by now
                if said.startswith("it was replaced"):
                    _delete(cluster, pod["metadata"]["name"])


@pytest.mark.parametrize("trouble", ["evict", "kill_container"])
async def test_a_command_ends_with_its_pod(cluster: FakeKubernetes, until: Until, trouble: str, tmp_path: Path) -> None:
    async with made() as envs:
        broken: list[SandboxBrokenError] = []

        async def run() -> None:
            try:
                await envs["default"].exec(["sh", "-c", f"echo > {tmp_path}/begun; exec sleep 600"], timeout=300)
            except SandboxBrokenError as error:
                broken.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await until((tmp_path / "begun").exists)
            getattr(cluster, trouble)(name_of(cluster))

        assert name_of(cluster) in str(broken[0])


# Going away


@pytest.mark.parametrize("trouble", ["fail", "reset", "lose_reply"])
async def test_a_delete_that_fails_is_made_again(cluster: FakeKubernetes, trouble: str) -> None:
    async with made():
        if trouble == "fail":
            cluster.fail(500, on="^delete pods", times=3)
        else:
            getattr(cluster, trouble)(on="^delete pods", times=2)

    assert cluster.objects("pods") == []


async def test_a_pod_that_does_not_go_is_forced(cluster: FakeKubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_removal, "_POLITE", 0.2)
    driver = KubernetesDriver()
    await driver.task_init("quiz", "a")
    envs = await driver.sample_init("quiz", "a", {})
    cluster.hold_deletes()

    await driver.sample_cleanup(envs, False)
    left = cluster.objects("pods")
    cluster.release_deletes()
    await driver.task_cleanup("quiz", "a", True)

    assert left == []


async def test_a_pod_that_can_not_be_removed_is_reported_with_what_removes_it(
    cluster: FakeKubernetes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_removal, "_POLITE", 0.1)
    monkeypatch.setattr(_removal, "_AGAIN", 0.1)
    monkeypatch.setattr(_removal, "_FORCED", 0.2)
    driver = KubernetesDriver()
    await driver.task_init("quiz", "a")
    envs = await driver.sample_init("quiz", "a", {})
    name = name_of(cluster)
    cluster.fail(403, "deletes are forbidden", on="^delete pods", times=None)

    with caplog.at_level(logging.WARNING):
        await driver.sample_cleanup(envs, True)
    cluster.clear()
    await driver.task_cleanup("quiz", "a", True)

    assert f"delete pod {name} --grace-period=0 --force" in caplog.text
    assert cluster.objects("pods") == [], "the end of the task tries once more"


async def test_what_is_named_is_removed_and_what_is_not_ours_stays(cluster: FakeKubernetes) -> None:
    driver = KubernetesDriver()
    envs = await driver.sample_init("quiz", "a", {})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "theirs"},
        "spec": {"containers": [{"name": "a", "image": "a", "command": ["sleep", "600"]}]},
    }
    cluster.apply(pod)

    listed = await driver.sandboxes()
    removed = await driver.remove([*(each.id for each in listed), "evals/theirs", "evals/nobody"])

    assert sorted(removed) == sorted(each.id for each in listed) and len(removed) == 2
    assert [each["metadata"]["name"] for each in cluster.objects("pods")] == ["theirs"]
    _delete(cluster, "theirs")
    await driver.sample_cleanup(envs, True)
    assert await driver.sandboxes() == []


async def test_the_threads_of_a_run_end_with_it(cluster: FakeKubernetes, until: Until) -> None:
    others = set(threading.enumerate())
    async with made():
        [watch] = [each for each in threading.enumerate() if each.name == "proctor-k8s-watch" and each not in others]

    await until(lambda: not watch.is_alive())


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_four_hundred_pods_come_and_go(cluster: FakeKubernetes, until: Until) -> None:
    driver = KubernetesDriver()
    await driver.task_init("quiz", "a")
    said: set[str] = set()

    async def sample(number: int) -> None:
        envs = await driver.sample_init("quiz", {"image": "a", "cpu": "1m", "memory": "1Mi"}, {})
        said.add((await envs["default"].exec(["echo", str(number)])).stdout)
        await until(lambda: len(said) == 400)  # all are there at once
        await driver.sample_cleanup(envs, False)

    async with anyio.create_task_group() as group:
        for number in range(400):
            group.start_soon(sample, number)
    await driver.task_cleanup("quiz", "a", True)

    assert said == {f"{number}\n" for number in range(400)}
    assert cluster.objects("pods") == []
    assert cluster.count("^watch pods") == 1


def _quota(cluster: FakeKubernetes, pods: int) -> None:
    about = {"name": "few"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": about, "spec": {"hard": {"pods": str(pods)}}}
    if not cluster.objects("resourcequotas"):
        cluster.apply(quota)
        return
    _request(cluster, "PUT", f"/api/v1/namespaces/{cluster.namespace}/resourcequotas/few", quota)


def _delete(cluster: FakeKubernetes, name: str) -> None:
    _request(cluster, "DELETE", f"/api/v1/namespaces/{cluster.namespace}/pods/{name}", {"gracePeriodSeconds": 0})


def _request(cluster: FakeKubernetes, method: str, path: str, body: Any) -> None:
    from proctor_sandbox_k8s._cluster import connect
    from proctor_sandbox_k8s._spec import Place

    connect(Place()).request(method, path, body=body)
