"""The pods of the fake Kubernetes run, whatever they are made of, and so do commands in them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from docker_engine import docker_engine
from kube_client import KubeClient
from kube_pods import IMAGE, pod

from proctor_testkit import FakeKubernetes

__all__ = ["docker_engine"]


@pytest.fixture(scope="module", params=["processes", pytest.param("docker", marks=pytest.mark.slow)])
def cluster(request: pytest.FixtureRequest) -> Iterator[FakeKubernetes]:
    host = None
    if request.param == "docker":
        host = request.getfixturevalue("docker_engine").environment["DOCKER_HOST"]
    with FakeKubernetes(request.param, namespace="tests", docker_host=host) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster: FakeKubernetes) -> KubeClient:
    return KubeClient(cluster)


@pytest.fixture(scope="module")
def running(client: KubeClient) -> str:
    return made(client, pod("running"))


def made(client: KubeClient, spec: dict[str, Any], phase: str = "Running") -> str:
    name = spec["metadata"]["name"]
    assert client.call("POST", client.pods, spec)[0] == 201
    client.until(name, phase)
    return str(name)


def heard(client: KubeClient, name: str, word: bytes) -> None:
    """Wait until the pod's first output is there: its shell has got beyond its first lines."""
    assert client.raw("GET", f"{client.pods}/{name}/log", follow="true", limitBytes=len(word))[2] == word


def of_shell(name: str, script: str, **spec: Any) -> dict[str, Any]:
    return pod(name, ["sh", "-c", script], **{"restartPolicy": "Never", **spec})


def test_a_pod_goes_through_its_phases(client: KubeClient) -> None:
    with client.watch(fieldSelector="metadata.name=phases") as events:
        client.call("POST", client.pods, of_shell("phases", "exit 3"))
        seen = []
        for event in events:
            status = event["object"]["status"]
            state = [*status.get("containerStatuses", [{}])[0].get("state", {})]
            seen.append((status["phase"], *state))
            if status["phase"] == "Failed":
                break

    assert list(dict.fromkeys(seen)) == [
        ("Pending",),
        ("Pending", "waiting"),
        ("Running", "running"),
        ("Failed", "terminated"),
    ]
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")
    conditions = {one["type"]: one["status"] for one in status["conditions"]}
    assert conditions["PodScheduled"] == "True" and conditions["Ready"] == "False"


def test_a_container_that_ends_is_started_again(client: KubeClient) -> None:
    made(client, of_shell("again", "exit 1", restartPolicy="Always"))

    with client.watch(fieldSelector="metadata.name=again") as events:
        counts = (event["object"]["status"]["containerStatuses"][0] for event in events)
        found = next(one for one in counts if one["restartCount"] == 2 and "running" in one["state"])

    assert found["lastState"]["terminated"]["exitCode"] == 1
    assert client.call("DELETE", f"{client.pods}/again", {"gracePeriodSeconds": 0})[0] == 200


def test_containers_of_a_pod_share_network_and_volumes(cluster: FakeKubernetes, client: KubeClient) -> None:
    spec = pod("pair", volumes=[{"name": "shared", "emptyDir": {}}])
    [first] = spec["spec"]["containers"]
    first["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
    spec["spec"]["containers"].append({**first, "name": "side"})
    spec["spec"]["initContainers"] = [{**first, "name": "init", "command": ["sh", "-c", "echo first > shared/x"]}]
    made(client, spec)
    here = "ip addr 2>/dev/null | grep inet; readlink /proc/self/ns/net"

    with client.session("pair", ["sh", "-c", here], container="main") as one:
        main = one.rest().out
    with client.session("pair", ["sh", "-c", here], container="side") as one:
        side = one.rest().out
    with client.session("pair", ["cat", "shared/x"], container="side") as one:
        written = one.rest()

    assert main == side and b"net:" in main
    assert (written.out, written.code) == (b"first\n", 0)
    with pytest.raises(ConnectionRefusedError, match=r"400 .*choose one of: \[main side\]"):
        client.exec("pair", ["true"])


def test_environment_directory_and_files_are_given(client: KubeClient) -> None:
    client.call("POST", f"{client.core}/secrets", {"metadata": {"name": "word"}, "stringData": {"word": "open"}})
    client.call("POST", f"{client.core}/configmaps", {"metadata": {"name": "files"}, "data": {"a.txt": "A"}})
    spec = pod("given", volumes=[{"name": "files", "configMap": {"name": "files"}}])
    [main] = spec["spec"]["containers"]
    main["workingDir"] = "/work"
    main["env"] = [
        {"name": "PLAIN", "value": "a b"},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "word", "key": "word"}}},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "BOTH", "value": "$(PLAIN)-$(WORD)-$$(PLAIN)"},
    ]
    main["volumeMounts"] = [{"name": "files", "mountPath": "/files"}]
    made(client, spec)

    said = client.exec("given", ["sh", "-c", 'echo "$PLAIN,$WORD,$POD,$BOTH,$HOSTNAME"; pwd; cat ../files/a.txt'])

    variables, where, content = said.out.decode().splitlines()
    assert variables == "a b,open,given,a b-open-$(PLAIN),given"
    assert where.endswith("/work") and content == "A"


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
def test_a_command_has_its_channels(client: KubeClient, running: str, protocol: str) -> None:
    done = client.exec(running, ["sh", "-c", "echo out; echo err >&2; exit 7"], protocol=protocol)

    assert (done.out, done.channels[2], done.code, done.end) == (b"out\n", b"err\n", 7, "closed")


def test_every_byte_goes_both_ways(client: KubeClient, running: str) -> None:
    data = bytes(range(256)) * 1000 + os.urandom(1000)

    done = client.exec(running, ["cat"], data)

    assert (done.out == data, done.code) == (True, 0)


def test_no_input_is_an_end_at_once(client: KubeClient, running: str) -> None:
    assert client.exec(running, ["cat"], b"").code == 0
    assert client.exec(running, ["cat"]).code == 0


def test_fragments_and_pings_are_understood(client: KubeClient, running: str) -> None:
    with client.session(running, ["cat"], stdin=True) as session:
        session.frame(2, b"\0he", final=False)
        session.frame(9, b"ping")
        session.frame(0, b"llo")
        assert session.receive() == b"\1"  # the first message: empty, it says that the connection stands
        heard = [session.receive(), session.receive()]
        session.send(255, b"\0")
        end = session.rest()

    assert sorted(one or b"" for one in heard) == [b"\1hello", b"ping"]
    assert end.code == 0


def test_a_terminal_has_a_size(client: KubeClient, running: str) -> None:
    script = "read go; stty size; test -t 1 && echo terminal"
    with client.session(running, ["sh", "-c", script], stdin=True, tty=True) as session:
        session.send(4, json.dumps({"Width": 132, "Height": 50}).encode())
        session.send(0, b"go\n")
        done = session.rest()

    assert b"50 132" in done.out and b"terminal" in done.out
    assert done.code == 0


def test_a_command_that_cannot_start_is_no_exit_code(client: KubeClient, running: str) -> None:
    done = client.exec(running, ["no-such-command"])

    assert done.code is None and done.status["reason"] == "InternalError"
    assert "executable file not found" in done.status["message"] and not done.out


def test_a_command_outlives_its_connection(client: KubeClient, running: str) -> None:
    wait = "while ! test -e left; do sleep 0.02; done; echo done > finished"
    with client.session(running, ["sh", "-c", wait]) as session:
        session.receive()

    finished = client.exec(running, ["sh", "-c", "touch left; while ! test -e finished; do sleep 0.02; done"])

    assert finished.code == 0


def test_commands_need_a_container_that_runs(client: KubeClient, running: str) -> None:
    made(client, of_shell("over", "true"), "Succeeded")

    for name, options, said in (
        ("over", {}, "400 .*completed pod"),
        ("nobody", {}, '404 .*pods ."nobody." not found'),
        (running, {"container": "other"}, "400 .*container other is not valid"),
        (running, {"protocol": "channel.k8s.io"}, "400 .*none of the protocols"),
    ):
        with pytest.raises(ConnectionRefusedError, match=said), client.session(name, ["true"], **options):
            pass


def test_logs_are_kept(client: KubeClient) -> None:
    made(client, of_shell("writes", "for n in 1 2 3 4; do echo $n; done"), "Succeeded")
    path = f"{client.pods}/writes/log"

    assert client.raw("GET", path)[2] == b"1\n2\n3\n4\n"
    assert client.raw("GET", path, tailLines=2)[2] == b"3\n4\n"
    assert client.raw("GET", path, limitBytes=3)[2] == b"1\n2"
    assert client.raw("GET", path, follow="true")[2] == b"1\n2\n3\n4\n"


def test_a_pod_that_is_deleted_gets_its_grace_period(cluster: FakeKubernetes, client: KubeClient) -> None:
    script = "trap 'echo asked; sleep 0.3; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    made(client, of_shell("graceful", script, terminationGracePeriodSeconds=20))
    heard(client, "graceful", b"up")

    with client.watch(fieldSelector="metadata.name=graceful") as events:
        _, marked = client.call("DELETE", f"{client.pods}/graceful")
        last = list(_until_deleted(events))[-1]["object"]

    assert marked["metadata"]["deletionGracePeriodSeconds"] == 20
    assert last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_a_pod_that_does_not_end_is_killed(client: KubeClient) -> None:
    made(client, of_shell("stubborn", "trap '' TERM; echo up; while :; do sleep 0.1; done"))
    heard(client, "stubborn", b"up")

    with client.watch(fieldSelector="metadata.name=stubborn") as events:
        client.call("DELETE", f"{client.pods}/stubborn", {"gracePeriodSeconds": 1})
        last = list(_until_deleted(events))[-1]["object"]

    assert last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


def test_a_pod_has_a_deadline(client: KubeClient) -> None:
    name = made(client, of_shell("late", "sleep 1000", activeDeadlineSeconds=1), "Failed")

    assert client.call("GET", f"{client.pods}/{name}")[1]["status"]["reason"] == "DeadlineExceeded"


def test_a_pod_is_ready_when_it_says_so(client: KubeClient) -> None:
    spec = pod("probed")
    spec["spec"]["containers"][0]["readinessProbe"] = {"exec": {"command": ["test", "-e", "up"]}}
    made(client, spec)
    before = client.call("GET", f"{client.pods}/probed")[1]["status"]["containerStatuses"][0]["ready"]

    client.exec("probed", ["touch", "up"])
    with client.watch(fieldSelector="metadata.name=probed") as events:
        ready = any(event["object"]["status"]["containerStatuses"][0]["ready"] for event in events)

    assert (before, ready) == (False, True)


def test_what_a_container_needs_and_is_not_there_is_said(client: KubeClient) -> None:
    spec = pod("wanting")
    spec["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": "not-yet"}}]
    client.call("POST", client.pods, spec)

    with client.watch(fieldSelector="metadata.name=wanting") as events:
        states = (event["object"]["status"].get("containerStatuses", [{}])[0].get("state", {}) for event in events)
        waiting = next(one["waiting"] for one in states if one.get("waiting", {}).get("message"))
    client.call("POST", f"{client.core}/secrets", {"metadata": {"name": "not-yet"}, "stringData": {"A": "1"}})
    client.until("wanting", "Running")

    assert (waiting["reason"], waiting["message"]) == ("CreateContainerConfigError", 'secret "not-yet" not found')
    assert client.exec("wanting", ["sh", "-c", "echo $A"]).out == b"1\n"


def test_a_node_has_so_much_room() -> None:
    with FakeKubernetes(pods=1) as cluster:
        client = KubeClient(cluster)
        made(client, pod("first"))
        client.call("POST", client.pods, pod("second"))
        with client.watch(fieldSelector="metadata.name=second") as events:
            found = (one for event in events for one in event["object"]["status"].get("conditions", []))
            said = next(found)
        client.call("DELETE", f"{client.pods}/first")
        client.until("second", "Running")

    assert (said["reason"], said["message"]) == ("Unschedulable", "0/1 nodes are available: 1 Too many pods.")


def _until_deleted(events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        yield event
        if event["type"] == "DELETED":
            return


def test_images_are_named(client: KubeClient, running: str) -> None:
    assert client.call("GET", f"{client.pods}/{running}")[1]["spec"]["containers"][0]["image"] == IMAGE
