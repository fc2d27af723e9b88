"""The objects that are sent to the API server: a pod, and the network policy that holds for it."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any

from proctor.contracts import SandboxOwner
from proctor_sandbox_k8s._owner import NETWORK, metadata_of
from proctor_sandbox_k8s._spec import ContainerSpec, NetworkRules, PodSpec

__all__ = ["IDLE", "network_policy", "pod_manifest", "pod_name", "policy_name"]

IDLE = ("sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done")
"""Waits, buries the processes that commands leave behind (it is process 1), and ends when it is told to."""

_RESOURCES = {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}}
# What common images need less often than those who break out of them; package managers, su and servers still work.
_SECURITY: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "capabilities": {"drop": ["MKNOD", "NET_RAW", "SETFCAP", "SETPCAP", "SYS_CHROOT"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod_name(task: str) -> str:
    """A name of its own for a pod: a host's name, too."""
    words = re.sub(r"[^a-z0-9]+", "-", task.rpartition("/")[2].lower())[:24].strip("-")
    return "-".join(filter(None, ("proctor", words, secrets.token_hex(6))))


def pod_manifest(
    spec: PodSpec,
    name: str,
    owner: SandboxOwner,
    driver: str,
    policy: str | None = None,
    hosts: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, Any]:
    """The pod of a sample.

    Args:
        spec: what it is to be.
        name: of the pod.
        owner: whose it is.
        driver: the id of the driver that makes it.
        policy: the network policy that holds for it, if one does.
        hosts: names that have given addresses in it.
    """
    about = metadata_of(owner, driver)
    labels = {**spec.labels, **about["labels"], **({NETWORK: policy} if policy else {})}
    body: dict[str, Any] = {
        "restartPolicy": "Never",  # a sandbox that was started anew is another one
        "terminationGracePeriodSeconds": 1,
        "enableServiceLinks": False,  # a model is told nothing of what else runs there
        "automountServiceAccountToken": spec.service_account_token,
        "containers": [_container(each) for each in spec.containers],
    }
    optional = {
        "nodeSelector": dict(spec.node_selector),
        "tolerations": list(spec.tolerations),
        "affinity": spec.affinity,
        "serviceAccountName": spec.service_account,
        "runtimeClassName": spec.runtime_class,
        "priorityClassName": spec.priority_class,
        "imagePullSecrets": [{"name": each} for each in spec.image_pull_secrets],
        "volumes": list(spec.volumes),
        "securityContext": spec.security_context,
        "activeDeadlineSeconds": spec.active_deadline,
        "hostAliases": _aliases(spec, hosts or {}),
    }
    body |= {key: value for key, value in optional.items() if value}
    annotations = {**spec.annotations, **about["annotations"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": body,
    }


def _container(spec: ContainerSpec) -> dict[str, Any]:
    command, args = spec.command, spec.args
    if command is None and args is None and spec.idle:
        command = IDLE
    made: dict[str, Any] = {
        "name": spec.name,
        "image": spec.image,
        "resources": _RESOURCES if spec.resources is None else spec.resources,
        "securityContext": {**_SECURITY, **(spec.security_context or {})},
    }
    optional = {
        "command": command and list(command),
        "args": args and list(args),
        "env": list(spec.env),
        "envFrom": list(spec.env_from),
        "workingDir": spec.working_dir,
        "volumeMounts": list(spec.volume_mounts),
        "ports": list(spec.ports),
        "readinessProbe": spec.readiness_probe,
        "imagePullPolicy": spec.image_pull_policy,
    }
    return made | {key: value for key, value in optional.items() if value}


def _aliases(spec: PodSpec, hosts: Mapping[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """Containers of one pod share its addresses, so a service's name is this machine's own."""
    found: dict[str, list[str]] = {}
    if len(spec.containers) > 1:
        found["127.0.0.1"] = [each.name for each in spec.containers]
    for name, addresses in hosts.items():
        for address in addresses:
            found.setdefault(address, []).append(name)
    return [{"ip": address, "hostnames": names} for address, names in found.items()]


def policy_name(rules: NetworkRules, hosts: Mapping[str, tuple[str, ...]], driver: str) -> str:
    """The name of the policy of one driver and one set of rules: pods that need the same share it."""
    told = json.dumps([rules.cidrs, rules.ports, rules.dns, sorted(hosts.items())])
    return f"proctor-{driver}-{hashlib.blake2b(told.encode(), digest_size=4).hexdigest()}"


def network_policy(
    rules: NetworkRules, name: str, owner: SandboxOwner, driver: str, hosts: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """What the pods that have the label of this name may reach: nothing but what is said; and nothing reaches them."""
    blocks = [*rules.cidrs, *(_one_address(each) for addresses in hosts.values() for each in addresses)]
    ports = [_port(each) for each in rules.ports]
    egress: list[dict[str, Any]] = []
    if blocks:
        to = [{"ipBlock": {"cidr": str(block)}} for block in dict.fromkeys(blocks)]
        egress.append({"to": to, **({"ports": ports} if ports else {})})
    if rules.dns:
        inside = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
        egress.append({"to": [inside], "ports": [_port("53/UDP"), _port("53/TCP")]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, **metadata_of(owner, driver)},
        "spec": {
            "podSelector": {"matchLabels": {NETWORK: name}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": egress,
        },
    }


def _one_address(address: str) -> str:
    return str(ipaddress.ip_network(address))


def _port(text: str) -> dict[str, Any]:
    number, _, protocol = text.partition("/")
    return {"port": int(number), "protocol": protocol.upper() or "TCP"}
