"""What only pods of containers have: limits, users, a network that can be taken away, names of services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from docker_engine import DockerEngine, docker_engine
from kube_client import KubeClient
from kube_pods import pod

from proctor_testkit import FakeKubernetes

__all__ = ["docker_engine"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(docker_engine: DockerEngine) -> Iterator[FakeKubernetes]:
    with FakeKubernetes("docker", docker_host=docker_engine.environment["DOCKER_HOST"]) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster: FakeKubernetes) -> KubeClient:
    return KubeClient(cluster)


def test_a_container_has_its_limits_and_rights(client: KubeClient) -> None:
    spec = pod("limited", hostAliases=[{"ip": "127.0.0.9", "hostnames": ["db", "cache"]}])
    [main] = spec["spec"]["containers"]
    main["securityContext"] = {"runAsUser": 65534, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    client.call("POST", client.pods, spec)
    client.until("limited", "Running")

    said = client.exec("limited", ["sh", "-c", "id -u; grep CapPrm /proc/self/status; touch /x; cat /etc/hosts"])

    lines = said.out.decode().splitlines()
    assert lines[0] == "65534" and lines[1].split()[1] == "0" * 16
    assert b"Read-only file system" in said.channels[2]
    assert any(line.split() == ["127.0.0.9", "db"] for line in lines)


def test_a_container_that_takes_too_much_memory_is_killed(client: KubeClient) -> None:
    spec = pod("greedy", ["sh", "-c", "tail -c 300000000 /dev/zero | wc -c; exit 0"], restartPolicy="Never")
    spec["spec"]["containers"][0]["command"] = ["tail", "-c", "300000000", "/dev/zero"]
    spec["spec"]["containers"][0]["resources"] = {"limits": {"memory": "16Mi"}}
    client.call("POST", client.pods, spec)

    found = client.until("greedy", "Failed")

    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


def test_a_policy_takes_the_network_away(cluster: FakeKubernetes, client: KubeClient) -> None:
    cluster.apply(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "deny"},
            "spec": {"podSelector": {"matchLabels": {"app": "alone"}}, "policyTypes": ["Egress"]},
        }
    )
    client.call("POST", client.pods, pod("alone"))
    client.until("alone", "Running")

    said = client.exec("alone", ["ls", "/sys/class/net"])

    assert said.out.split() == [b"lo"]


def test_a_service_has_a_name(cluster: FakeKubernetes, client: KubeClient) -> None:
    client.call("POST", client.pods, pod("served"))
    address = client.until("served", "Running")["status"].get("podIP")
    service = {"metadata": {"name": "store"}, "spec": {"selector": {"app": "served"}, "clusterIP": "None"}}
    client.call("POST", f"{client.core}/services", service)
    client.call("POST", client.pods, pod("asking"))
    client.until("asking", "Running")

    said = client.exec("asking", ["cat", "/etc/hosts"]).out.decode()

    assert not address or [address, "store.default.svc.cluster.local"] in [line.split() for line in said.splitlines()]


def test_an_image_that_the_engine_lacks_cannot_be_pulled(client: KubeClient) -> None:
    spec = pod("lacks")
    spec["spec"]["containers"][0]["image"] = "example.com/no-such-image:1"
    client.call("POST", client.pods, spec)

    with client.watch(fieldSelector="metadata.name=lacks") as events:
        states = (event["object"]["status"].get("containerStatuses", [{}])[0].get("state", {}) for event in events)
        waiting = next(one["waiting"] for one in states if one.get("waiting", {}).get("message"))

    assert waiting["reason"] in ("ErrImagePull", "ImagePullBackOff") and "no-such-image" in waiting["message"]


def test_nothing_is_left_in_the_engine(docker_engine: DockerEngine) -> None:
    with FakeKubernetes("docker", docker_host=docker_engine.environment["DOCKER_HOST"]) as cluster:
        client = KubeClient(cluster)
        spec = pod("left", volumes=[{"name": "shared", "emptyDir": {}}])
        spec["spec"]["containers"][0]["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
        client.call("POST", client.pods, spec)
        uid = client.until("left", "Running")["metadata"]["uid"]
        mine = ("--filter", f"label=proctor.fake-kubernetes.pod={uid}")
        there = [docker_engine.docker(kind, "ls", "-q", *mine) for kind in ("container", "volume")]

    left = [docker_engine.docker("container", "ls", "-aq", *mine), docker_engine.docker("volume", "ls", "-q", *mine)]
    assert all(there) and not any(left)
