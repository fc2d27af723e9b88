"""The real kubectl works with the fake Kubernetes, whatever its pods are made of."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from child_processes import running as running_process
from docker_engine import docker_engine
from kube_pods import pod
from kubectl import Kubectl, kubectl_path

from proctor_testkit import FakeKubernetes

__all__ = ["docker_engine", "kubectl_path"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["processes", "docker"])
def cluster(request: pytest.FixtureRequest) -> Iterator[FakeKubernetes]:
    host = None
    if request.param == "docker":
        host = request.getfixturevalue("docker_engine").environment["DOCKER_HOST"]
    with FakeKubernetes(request.param, namespace="tests", docker_host=host) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def kubectl(kubectl_path: str, cluster: FakeKubernetes, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    home = tmp_path_factory.mktemp("kubectl")
    return Kubectl(kubectl_path, cluster.kubeconfig(home / "kubeconfig"), home)


@pytest.fixture(scope="module")
def running(kubectl: Kubectl) -> str:
    """A pod that was applied, and that kubectl has waited for."""
    kubectl.said("apply", "-f", "-", data=json.dumps(pod("running")).encode())
    kubectl.said("wait", "--for=condition=Ready", "pod/running", "--timeout=60s")
    return "running"


def test_it_prints_tables(kubectl: Kubectl, running: str) -> None:
    lines = kubectl.said("get", "pods").splitlines()

    assert lines[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert lines[1].split()[:4] == [running, "1/1", "Running", "0"]
    assert "fake-node" in kubectl.said("get", "pods", "-o", "wide")


def test_it_reads_objects(kubectl: Kubectl, running: str) -> None:
    found = kubectl.json("get", "pod", running)

    assert found["status"]["phase"] == "Running"
    assert [one["metadata"]["name"] for one in kubectl.json("get", "pods", "-l", "app=running")["items"]] == [running]
    assert kubectl.json("get", "pods", "-l", "app!=running")["items"] == []
    assert kubectl.json("get", "pods", "--field-selector", "status.phase=Pending")["items"] == []


def test_it_watches(kubectl: Kubectl, cluster: FakeKubernetes) -> None:
    before = cluster.count("^watch pods")
    watching = [kubectl.path, "get", "pods", "-l", "app=watched", "--watch", "--no-headers"]
    with running_process(watching, env=kubectl.environment, stdout=subprocess.PIPE, text=True) as child:
        assert cluster.wait("^watch pods", before + 1)
        script = ["sh", "-c", "while ! test -e go; do sleep 0.05; done; exit 3"]
        kubectl.said("create", "-f", "-", data=json.dumps(pod("watched", script, restartPolicy="Never")).encode())
        words = []
        for line in child.stdout:
            words.append(line.split()[2])
            if words[-1] == "Running":
                kubectl.said("exec", "watched", "--", "touch", "go")
            if words[-1] == "Error":
                break

    assert list(dict.fromkeys(words)) == ["Pending", "ContainerCreating", "Running", "Error"]


def test_it_describes_a_pod_with_its_events(kubectl: Kubectl, running: str) -> None:
    said = kubectl.said("describe", "pod", running)

    assert "Started container main" in said and "Status:           Running" in said


def test_it_runs_commands(kubectl: Kubectl, cluster: FakeKubernetes, running: str) -> None:
    before = cluster.count("^exec")

    done = kubectl.run("exec", running, "--", "sh", "-c", "echo out; echo err >&2; exit 7")

    assert (done.returncode, done.stdout) == (7, b"out\n")
    assert done.stderr.startswith(b"err\n")
    assert cluster.count("^exec") == before + 1
    assert cluster.requests[-1].headers["sec-websocket-protocol"] == "v5.channel.k8s.io"


def test_it_says_that_a_command_is_not_there(kubectl: Kubectl, running: str) -> None:
    done = kubectl.run("exec", running, "--", "no-such-command")

    assert done.returncode == 1
    assert b"executable file not found" in done.stderr and not done.stdout


def test_it_sends_input_and_gets_every_byte_back(kubectl: Kubectl, running: str) -> None:
    data = os.urandom(20 << 20)

    done = kubectl.run("exec", "-i", running, "--", "cat", data=data)

    same = done.stdout == data  # not in the assertion, where pytest would look for minutes at what differs
    assert same and done.returncode == 0


def test_it_copies_both_ways(kubectl: Kubectl, running: str, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(bytes(range(256)) * 1000)

    kubectl.said("cp", str(tmp_path / "there"), f"{running}:copied")
    kubectl.said("cp", f"{running}:copied", str(tmp_path / "back"))

    assert (tmp_path / "back").read_bytes() == (tmp_path / "there").read_bytes()


def test_it_reads_logs_and_follows_them(kubectl: Kubectl) -> None:
    counts = ["sh", "-c", "for n in 1 2 3; do echo $n; sleep 0.1; done"]
    kubectl.said("create", "-f", "-", data=json.dumps(pod("counts", counts, restartPolicy="Never")).encode())
    kubectl.said("wait", "--for=jsonpath={.status.containerStatuses[0].state}", "pod/counts", "--timeout=60s")

    followed = kubectl.run("logs", "-f", "counts")
    kubectl.said("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/counts", "--timeout=60s")

    assert followed.stdout in (b"1\n2\n3\n", b"")  # nothing, when it was waiting to start
    assert kubectl.said("logs", "counts") == "1\n2\n3\n"
    assert kubectl.said("logs", "counts", "--tail=1") == "3\n"
    assert kubectl.said("get", "pod", "counts").splitlines()[1].split()[1:3] == ["0/1", "Completed"]


def test_it_refuses_what_a_server_refuses(kubectl: Kubectl) -> None:
    wrong = pod("wrong", hostnetwork=True)
    wrong["metadata"]["labels"] = {"sample": "a b"}

    unknown = kubectl.run("create", "-f", "-", data=json.dumps(wrong).encode())
    invalid = kubectl.run("create", "--validate=false", "-f", "-", data=json.dumps(wrong).encode())

    assert b'unknown field "spec.hostnetwork"' in unknown.stderr
    assert b"a valid label must be" in invalid.stderr
    assert b'pods "wrong" not found' in kubectl.run("get", "pod", "wrong").stderr


def test_it_changes_objects(kubectl: Kubectl, running: str) -> None:
    kubectl.said("label", "pod", running, "colour=blue")
    kubectl.said("apply", "-f", "-", data=json.dumps(pod(running)).encode())
    kubectl.said("apply", "--server-side", "-f", "-", data=json.dumps(pod(running)).encode())
    kubectl.said("patch", "pod", running, "--type=json", "-p", '[{"op": "remove", "path": "/metadata/labels/colour"}]')

    assert kubectl.json("get", "pod", running)["metadata"]["labels"] == {"app": running}


def test_it_keeps_other_objects(kubectl: Kubectl) -> None:
    objects = [
        {"kind": "Namespace", "metadata": {"name": "apart"}},
        {"kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "apart"}, "data": {"colour": "blue"}},
        {"kind": "Secret", "metadata": {"name": "hidden", "namespace": "apart"}, "stringData": {"word": "open"}},
        {"kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "apart"}, "spec": {"hard": {"pods": "0"}}},
    ]
    documents = "\n".join(json.dumps({"apiVersion": "v1", **one}) for one in objects)
    kubectl.said("apply", "-f", "-", data=documents.encode())

    over = kubectl.run("create", "-n", "apart", "-f", "-", data=json.dumps(pod("over")).encode())

    assert kubectl.json("get", "configmap", "settings", "-n", "apart")["data"] == {"colour": "blue"}
    assert kubectl.json("get", "secret", "hidden", "-n", "apart")["data"] == {"word": "b3Blbg=="}
    assert b"exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0" in over.stderr
    kubectl.said("delete", "namespace", "apart", "--timeout=60s")
    assert b"not found" in kubectl.run("get", "namespace", "apart").stderr


def test_it_deletes_and_waits_until_nothing_is_left(kubectl: Kubectl, cluster: FakeKubernetes) -> None:
    kubectl.said("create", "-f", "-", data=json.dumps(pod("short")).encode())
    kubectl.said("wait", "--for=condition=Ready", "pod/short", "--timeout=60s")

    kubectl.said("delete", "pod", "short", "--wait=false")
    kubectl.said("wait", "--for=delete", "pod/short", "--timeout=60s")

    assert "short" not in [one["metadata"]["name"] for one in cluster.objects()]
