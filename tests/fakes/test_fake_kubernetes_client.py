"""The Python client of Kubernetes works with the fake one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from kube_pods import pod
from kubernetes import client as kubernetes
from kubernetes import config, stream, watch

from proctor_testkit import FakeKubernetes


@pytest.fixture(scope="module")
def cluster() -> Iterator[FakeKubernetes]:
    with FakeKubernetes(namespace="tests", context="testing") as cluster:
        yield cluster


@pytest.fixture
def core(cluster: FakeKubernetes) -> Iterator[kubernetes.CoreV1Api]:
    with config.new_client_from_config(str(cluster.kubeconfig()), context="testing") as api:
        yield kubernetes.CoreV1Api(api)


@pytest.fixture
def running(core: kubernetes.CoreV1Api) -> Iterator[str]:
    core.create_namespaced_pod("tests", pod("running"))
    watcher = watch.Watch()
    for event in watcher.stream(core.list_namespaced_pod, "tests", field_selector="metadata.name=running"):
        if event["object"].status.phase == "Running":
            watcher.stop()
    yield "running"
    core.delete_namespaced_pod("running", "tests", grace_period_seconds=0)


def test_it_reads_and_changes_objects(core: kubernetes.CoreV1Api) -> None:
    body = kubernetes.V1ConfigMap(metadata=kubernetes.V1ObjectMeta(name="settings"), data={"colour": "blue"})

    core.create_namespaced_config_map("tests", body)
    core.patch_namespaced_config_map("settings", "tests", {"data": {"shape": "round"}})
    found = core.read_namespaced_config_map("settings", "tests")
    core.delete_namespaced_config_map("settings", "tests")

    assert found.data == {"colour": "blue", "shape": "round"}
    with pytest.raises(kubernetes.ApiException) as refused:
        core.read_namespaced_config_map("settings", "tests")
    assert refused.value.status == 404


def test_it_watches_a_pod_to_its_end(core: kubernetes.CoreV1Api) -> None:
    core.create_namespaced_pod("tests", pod("ends", ["sh", "-c", "exit 4"], restartPolicy="Never"))
    watcher, seen = watch.Watch(), list[str]()

    for event in watcher.stream(core.list_namespaced_pod, "tests", field_selector="metadata.name=ends"):
        seen.append(event["object"].status.phase)
        if seen[-1] == "Failed":
            watcher.stop()

    ended = core.read_namespaced_pod_status("ends", "tests").status.container_statuses[0].state.terminated
    assert seen[0] in ("Pending", "Running", "Failed") and ended.exit_code == 4


def test_a_watch_that_expired_begins_again(cluster: FakeKubernetes, core: kubernetes.CoreV1Api) -> None:
    old = core.list_namespaced_pod("tests").metadata.resource_version
    cluster.expire_watches()

    with pytest.raises(kubernetes.ApiException) as expired:
        list(watch.Watch().stream(core.list_namespaced_pod, "tests", resource_version=old, timeout_seconds=1))

    assert expired.value.status == 410


def test_it_runs_commands(core: kubernetes.CoreV1Api, running: str) -> None:
    command = ["sh", "-c", "cat; echo err >&2; exit 5"]
    asked = {"stdin": True, "stdout": True, "stderr": True, "tty": False, "_preload_content": False, "binary": True}
    data = os.urandom(100_000)

    told = stream.stream(core.connect_get_namespaced_pod_exec, running, "tests", command=["cat"], **asked)
    told.write_stdin(data)
    got = b""
    while len(got) < len(data):
        told.update(timeout=10)
        got += told.read_stdout(timeout=0) or b""
    told.close()
    asked |= {"stdin": False, "binary": False}
    ended = stream.stream(core.connect_get_namespaced_pod_exec, running, "tests", command=command, **asked)
    ended.run_forever(timeout=60)

    same = got == data
    assert same
    assert (ended.returncode, ended.read_stderr()) == (5, "err\n")
    ended.sock.shutdown()  # close() leaves the socket open when the server has closed first


def test_it_reads_logs(core: kubernetes.CoreV1Api, running: str) -> None:
    assert core.read_namespaced_pod_log(running, "tests") == "ready\n"
