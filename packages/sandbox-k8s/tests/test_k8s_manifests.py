"""The objects that are sent to the API server."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import SandboxOwner
from proctor_sandbox_k8s._manifest import IDLE, network_policy, pod_manifest, pod_name, policy_name
from proctor_sandbox_k8s._owner import label_value, owner_of
from proctor_sandbox_k8s._reading import read_spec
from proctor_sandbox_k8s._source import read_source

OWNER = SandboxOwner.of_this_process("run7", task="ctf/" + "x" * 80, sample="sample ü/1\n", epoch=2)
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
HOST = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def test_a_pod_of_an_image_is_a_safe_one_that_waits() -> None:
    pod = pod_manifest(read_spec(read_source("python:3.12")), "box-1", OWNER, "d1", "policy-1")

    spec = pod["spec"]
    [container] = spec["containers"]
    assert container["command"] == list(IDLE)
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["resources"]["limits"] == {"memory": "2Gi"}
    assert (spec["restartPolicy"], spec["automountServiceAccountToken"]) == ("Never", False)
    assert "finalizers" not in pod["metadata"]
    assert pod["metadata"]["labels"]["proctor.network"] == "policy-1"
    assert json.loads(json.dumps(pod)) == pod, "it is JSON as it stands"


def test_services_reach_one_another_by_name() -> None:
    values = {"image": "a", "services": {"web": {"image": "b"}, "db": {"image": "c"}}}

    spec = pod_manifest(read_spec(read_source(values)), "box-1", OWNER, "d1")["spec"]

    assert spec["hostAliases"] == [{"ip": "127.0.0.1", "hostnames": ["default", "web", "db"]}]
    assert "command" not in spec["containers"][1], "a service runs what its image runs"


def test_all_of_a_values_file_is_in_the_pod() -> None:
    values = {
        "image": "a",
        "command": ["run"],
        "args": ["--fast"],
        "workingDir": "/work",
        "securityContext": {"runAsUser": 1000, "allowPrivilegeEscalation": True},
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu"}],
        "affinity": {"nodeAffinity": {}},
        "runtimeClassName": "gvisor",
        "priorityClassName": "low",
        "serviceAccount": "box",
        "automountServiceAccountToken": True,
        "imagePullSecrets": "registry",
        "imagePullPolicy": "Always",
        "podSecurityContext": {"fsGroup": 7},
        "activeDeadlineSeconds": 60,
        "labels": {"team": "evals", "proctor.run": "mine"},
        "volumes": [{"name": "v", "configMap": {"name": "c"}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }

    pod = pod_manifest(read_spec(read_source(values)), "box-1", OWNER, "d1")

    container, spec = pod["spec"]["containers"][0], pod["spec"]
    assert (container["command"], container["args"], container["workingDir"]) == (["run"], ["--fast"], "/work")
    assert container["securityContext"]["allowPrivilegeEscalation"] is True, "who asks for it gets it"
    assert container["securityContext"]["capabilities"]["drop"], "and what was not spoken of stays"
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert (container["imagePullPolicy"], container["volumeMounts"]) == ("Always", [{"name": "v", "mountPath": "/v"}])
    assert (spec["runtimeClassName"], spec["priorityClassName"], spec["serviceAccountName"]) == ("gvisor", "low", "box")
    assert spec["imagePullSecrets"] == [{"name": "registry"}] and spec["automountServiceAccountToken"] is True
    assert (spec["nodeSelector"], spec["tolerations"]) == ({"pool": "gpu"}, [{"key": "gpu"}])
    assert (spec["activeDeadlineSeconds"], spec["securityContext"]) == (60, {"fsGroup": 7})
    assert pod["metadata"]["labels"]["team"] == "evals"
    assert pod["metadata"]["labels"]["proctor.run"] == "run7", "whose it is can't be changed"


def test_whose_a_pod_is_can_be_read_back() -> None:
    pod = pod_manifest(read_spec(read_source("a")), "box-1", OWNER, "d1")

    assert owner_of(pod) == OWNER
    assert all(LABEL.fullmatch(value) for value in pod["metadata"]["labels"].values())


@given(st.text(max_size=120))
def test_a_label_may_be_what_it_is(text: str) -> None:
    made = label_value(text)

    assert LABEL.fullmatch(made)
    assert made == text or not LABEL.fullmatch(text)


@given(st.text(max_size=120), st.text(max_size=120))
def test_different_texts_have_different_labels(one: str, other: str) -> None:
    assert (label_value(one) == label_value(other)) == (one == other)


@given(st.text(max_size=80))
def test_a_pod_has_a_host_name_of_its_own(task: str) -> None:
    assert HOST.fullmatch(pod_name(task))
    assert pod_name(task) != pod_name(task)


def test_a_policy_refuses_everything_that_was_not_asked_for() -> None:
    rules = read_spec(read_source("a")).network

    policy = network_policy(rules, "p", OWNER, "d1", {})

    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert (policy["spec"]["ingress"], policy["spec"]["egress"]) == ([], [])
    assert policy["spec"]["podSelector"] == {"matchLabels": {"proctor.network": "p"}}


def test_a_policy_lets_through_what_was() -> None:
    network = {"cidrs": ["10.0.0.0/8"], "domains": ["data.example.org"], "ports": [443, "53/udp"], "dns": True}
    rules = read_spec(read_source({"image": "a", "network": network})).network
    hosts = {"data.example.org": ("151.101.0.223", "2a04:4e42::223")}

    blocks, names = network_policy(rules, "p", OWNER, "d1", hosts)["spec"]["egress"]

    assert [each["ipBlock"]["cidr"] for each in blocks["to"]] == [
        "10.0.0.0/8",
        "151.101.0.223/32",
        "2a04:4e42::223/128",
    ]
    assert blocks["ports"] == [{"port": 443, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
    assert {"port": 53, "protocol": "UDP"} in names["ports"]


def test_a_name_that_may_be_reached_has_the_address_that_may_be_reached() -> None:
    hosts = {"data.example.org": ("151.101.0.223",), "files.example.org": ("151.101.0.223",)}

    spec = pod_manifest(read_spec(read_source("a")), "box-1", OWNER, "d1", "p", hosts)["spec"]

    assert spec["hostAliases"] == [{"ip": "151.101.0.223", "hostnames": ["data.example.org", "files.example.org"]}]


@pytest.mark.parametrize("other", [{"ports": [80]}, {"dns": True}, {"cidrs": ["10.0.0.0/8"]}])
def test_pods_with_the_same_rules_share_a_policy(other: dict[str, object]) -> None:
    def name(network: object, driver: str = "d1") -> str:
        return policy_name(read_spec(read_source({"image": "a", "network": network})).network, {}, driver)

    assert name("none") == name({}) != name(other)
    assert name(other) != name(other, "d2"), "one run never takes away the policy of another"
