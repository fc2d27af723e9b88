"""The fake Kubernetes fails as it is told, and counts what it was asked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

import pytest
from docker_engine import DockerEngine, docker_engine
from kube_client import KubeClient
from kube_killed import left_by
from kube_pods import IMAGE, pod

from proctor_testkit import FakeKubernetes

__all__ = ["docker_engine"]

WAITS = ["sh", "-c", "echo begun; sleep 1000"]


@pytest.fixture
def cluster() -> Iterator[FakeKubernetes]:
    with FakeKubernetes(namespace="tests") as cluster:
        yield cluster


@pytest.fixture
def client(cluster: FakeKubernetes) -> KubeClient:
    return KubeClient(cluster)


@pytest.fixture
def running(client: KubeClient) -> str:
    return started(client, "running")


def started(client: KubeClient, name: str, **spec: object) -> str:
    assert client.call("POST", client.pods, pod(name, **spec))[0] == 201
    client.until(name, "Running")
    return name


def test_requests_of_a_kind_fail_by_a_schedule(cluster: FakeKubernetes, client: KubeClient) -> None:
    cluster.schedule(500, 200, 503, on="^list pods")
    cluster.fail(429, on="^get pods", headers={"retry-after": "3"}, times=None)

    listed = [client.call("GET", client.pods)[0] for _ in range(4)]
    status, headers, _ = client.raw("GET", f"{client.pods}/any")
    made, _ = client.call("POST", client.pods, pod("any"))
    cluster.clear()

    assert (listed, made) == ([500, 200, 503, 200], 201)
    assert (status, headers["retry-after"]) == (429, "3")
    assert client.call("GET", f"{client.pods}/any")[0] == 200
    assert (cluster.count("^list pods"), cluster.count("pods"), cluster.count("^exec")) == (4, 7, 0)


def test_a_handshake_is_refused(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    cluster.schedule(500, 403, on="^exec")

    for status in (500, 403):
        with pytest.raises(ConnectionRefusedError, match=f"^{status} "):
            client.exec(running, ["true"])

    assert client.exec(running, ["true"]).code == 0
    assert cluster.count("^exec") == 3


def test_a_request_is_done_and_its_answer_is_lost(cluster: FakeKubernetes, client: KubeClient) -> None:
    cluster.lose_reply(on="^create pods")

    with pytest.raises(ConnectionError):
        client.call("POST", client.pods, pod("made"))

    assert [one["metadata"]["name"] for one in cluster.objects()] == ["made"]


def test_a_connection_is_reset_before_anything_is_done(cluster: FakeKubernetes, client: KubeClient) -> None:
    cluster.reset(on="^create pods")

    with pytest.raises(ConnectionError):
        client.call("POST", client.pods, pod("made"))

    assert cluster.objects() == []


def test_the_output_of_a_command_is_cut(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    cluster.cut(100_000, on="^exec")

    done = client.exec(running, ["head", "-c", "1000000", "/dev/zero"])

    assert done.end in ("cut", "reset") and done.status is None
    assert 0 < len(done.out) < 100_000


def test_a_frame_is_sent_by_half(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    cluster.half_frame()

    done = client.exec(running, ["echo", "a longer line than one byte"])

    assert done.end in ("cut", "reset") and done.status is None and not done.out


def test_a_command_goes_silent(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    cluster.cut(5, on="^exec", stall=True)

    with client.session(running, ["echo", "a longer line"]) as session:
        session.patience(0.3)
        done = session.rest()

    assert done.end == "silent" and done.status is None


def test_output_drips_and_is_whole(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    cluster.drip(0.0005)

    done = client.exec(running, ["head", "-c", "5000", "/dev/zero"])

    assert (len(done.out), done.code) == (5000, 0)


def test_a_watch_and_a_log_are_cut(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    cluster.cut(200, on="^watch pods")
    cluster.half_frame(on="^log")

    with client.watch() as events, pytest.raises((OSError, HTTPException)):
        list(events)
    with pytest.raises((OSError, HTTPException)):
        client.raw("GET", f"{client.pods}/{running}/log")


def test_a_container_dies_in_the_middle_of_a_command(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    with client.session(running, WAITS) as session:
        assert [session.receive(), session.receive()] == [b"\1", b"\1begun\n"]

        cluster.kill_container(running)
        done = session.rest()

    assert done.code == 137
    with client.watch(fieldSelector="metadata.name=running") as events:
        states = (event["object"]["status"]["containerStatuses"][0] for event in events)
        assert next(one for one in states if "running" in one["state"] and one["restartCount"] == 1)


def test_a_pod_is_evicted(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    with client.session(running, WAITS) as session:
        session.receive()
        cluster.evict(running)
        done = session.rest()

    status = client.call("GET", f"{client.pods}/{running}")[1]["status"]
    assert done.end in ("cut", "reset") and done.status is None
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")


def test_a_pod_is_replaced_by_another_of_its_name(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    client.exec(running, ["touch", "mine"])
    before = client.call("GET", f"{client.pods}/{running}")[1]["metadata"]["uid"]

    cluster.replace(running)
    client.until(running, "Running")

    assert client.call("GET", f"{client.pods}/{running}")[1]["metadata"]["uid"] != before
    assert client.exec(running, ["test", "-e", "mine"]).code == 1


def test_a_node_is_lost_and_found(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    with client.session(running, WAITS) as session:
        session.receive()
        cluster.lose_node()
        done = session.rest()

    assert done.end in ("cut", "reset")
    with pytest.raises(ConnectionRefusedError, match=r"500 .*i/o timeout"):
        client.exec(running, ["true"])
    conditions = {
        one["type"]: one["status"] for one in client.call("GET", f"{client.pods}/{running}")[1]["status"]["conditions"]
    }
    assert conditions["Ready"] == "False"
    cluster.find_node()
    assert client.exec(running, ["true"]).code == 0


def test_a_delete_fails_hangs_and_is_forced(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    cluster.schedule(500, on="^delete pods")
    cluster.hold_deletes()

    statuses = [client.call("DELETE", f"{client.pods}/{running}")[0] for _ in range(2)]
    [held] = cluster.objects()
    client.call("DELETE", f"{client.pods}/{running}", {"gracePeriodSeconds": 0})

    assert statuses == [500, 200]
    assert held["metadata"]["deletionTimestamp"] and held["status"]["phase"] == "Running"
    assert cluster.objects() == []


def test_a_delete_that_hangs_comes_to_its_end(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    cluster.hold_deletes()
    client.call("DELETE", f"{client.pods}/{running}")

    cluster.release_deletes()

    client.until(running, "Gone")


def test_an_image_cannot_be_pulled(cluster: FakeKubernetes, client: KubeClient) -> None:
    cluster.lose_image(IMAGE)
    client.call("POST", client.pods, pod("waits"))

    with client.watch(fieldSelector="metadata.name=waits") as events:
        states = (event["object"]["status"].get("containerStatuses", [{}])[0].get("state", {}) for event in events)
        reasons = (one["waiting"]["reason"] for one in states if "waiting" in one)
        assert "ErrImagePull" in reasons and "ImagePullBackOff" in reasons
    cluster.find_image(IMAGE)

    assert client.until("waits", "Running")


def test_pods_find_no_place(cluster: FakeKubernetes, client: KubeClient) -> None:
    cluster.unschedulable("0/1 nodes are available: 1 Insufficient memory.")
    client.call("POST", client.pods, pod("waits"))

    with client.watch("/api/v1/namespaces/tests/events") as events:
        event = next(events)["object"]
    cluster.unschedulable("")

    assert (event["reason"], event["involvedObject"]["name"]) == ("FailedScheduling", "waits")
    assert client.until("waits", "Running")


def test_pods_are_slow_to_start(cluster: FakeKubernetes, client: KubeClient) -> None:
    cluster.hold_starts()
    client.call("POST", client.pods, pod("waits"))
    with client.watch(fieldSelector="metadata.name=waits") as events:
        states = (event["object"]["status"].get("containerStatuses") for event in events)
        [state] = next(one for one in states if one)

    cluster.release_starts()

    assert state["state"]["waiting"]["reason"] == "ContainerCreating"
    assert client.until("waits", "Running")


@pytest.mark.slow
def test_four_hundred_pods_at_once(cluster: FakeKubernetes, client: KubeClient) -> None:
    names = [f"pod-{number}" for number in range(400)]
    with client.watch() as events:
        for name in names:
            client.call("POST", client.pods, pod(name, ["sleep", "1000"]))
        up: set[str] = set()
        for event in events:
            if event["object"]["status"]["phase"] == "Running":
                up.add(event["object"]["metadata"]["name"])
            if len(up) == len(names):
                break
        client.call("DELETE", client.pods, {"gracePeriodSeconds": 1})
        left = set(names)
        for event in events:
            if event["type"] == "DELETED":
                left.discard(event["object"]["metadata"]["name"])
            if not left:
                break

    assert cluster.objects() == []


def test_what_a_killed_fake_left_is_taken_away_by_the_next() -> None:
    left_by("processes", None)
    command = ["sh", "-c", "grep -lz PROCTOR_FAKE_KUBERNETES= /proc/[0-9]*/environ 2>/dev/null || true"]

    with FakeKubernetes():
        pass

    found = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.split()
    assert [path for path in found if "12345" in command_line(path)] == []


def command_line(environ: str) -> str:
    """The command of the process with that file; empty for one of another fake that has ended meanwhile."""
    try:
        return Path(environ).with_name("cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.slow
def test_containers_that_a_killed_fake_left_are_taken_away(docker_engine: DockerEngine) -> None:
    host = docker_engine.environment["DOCKER_HOST"]
    uid = left_by("docker", host)
    mine = ("ps", "-aq", "--filter", f"label=proctor.fake-kubernetes.pod={uid}")
    assert docker_engine.docker(*mine).strip()

    with FakeKubernetes("docker", docker_host=host):
        assert not docker_engine.docker(*mine).strip()


def test_nothing_is_left_in_the_folder_of_a_fake(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    place = Path(client.exec(running, ["pwd"]).out.decode().strip())

    client.call("DELETE", f"{client.pods}/{running}")
    client.until(running, "Gone")

    assert not place.exists() and place.parts[-2].endswith("-main-0")
    assert str(os.getpid()) in str(place)


def test_a_fake_leaves_another_of_its_process_alone(cluster: FakeKubernetes, client: KubeClient, running: str) -> None:
    with FakeKubernetes(namespace="tests"):
        pass

    assert client.exec(running, ["true"]).code == 0
    assert cluster.kubeconfig().exists()


def test_a_fake_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with FakeKubernetes() as cluster:
        assert cluster.kubeconfig().is_relative_to(tmp_path)

    assert list(tmp_path.iterdir()) == []
