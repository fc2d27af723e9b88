"""What the pod of a sample is to be: made from a configuration, turned into a manifest.

Nothing here talks to a cluster. Times are seconds; quantities (``500m``, ``2Gi``) are Kubernetes' own texts. What is
passed on to the API server as it is has Kubernetes' own form, and the server says what it does not understand in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ContainerSpec", "NetworkRules", "Place", "PodSpec"]

START_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where pods are made.

    Args:
        context: of the kubeconfig; ``None`` = its current one, or the pod that this process runs in.
        namespace: ``None`` = the context's own.
    """

    context: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """One container: a sandbox of the sample.

    Args:
        name: of the sandbox; other containers of the pod reach this one by it.
        image: what it runs.
        command: in place of the image's entry point; ``None`` for both this and ``args`` leaves it to ``idle``.
        args: in place of the image's command.
        idle: with neither ``command`` nor ``args``: only wait, in place of what the image would do.
        env: in Kubernetes' form.
        env_from: in Kubernetes' form.
        working_dir: ``None`` = the image's own, or ``/workspace`` where that is ``/``.
        resources: in Kubernetes' form; ``None`` = the provider's modest ones.
        security_context: in Kubernetes' form; ``None`` = the provider's safe one.
        volume_mounts: in Kubernetes' form.
        ports: in Kubernetes' form.
        readiness_probe: in Kubernetes' form; the sample waits for it.
        image_pull_policy: ``Always``, ``IfNotPresent`` or ``Never``.
    """

    name: str
    image: str
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    idle: bool = True
    env: tuple[Mapping[str, Any], ...] = ()
    env_from: tuple[Mapping[str, Any], ...] = ()
    working_dir: str | None = None
    resources: Mapping[str, Any] | None = None
    security_context: Mapping[str, Any] | None = None
    volume_mounts: tuple[Mapping[str, Any], ...] = ()
    ports: tuple[Mapping[str, Any], ...] = ()
    readiness_probe: Mapping[str, Any] | None = None
    image_pull_policy: str | None = None


@dataclass(frozen=True, slots=True)
class NetworkRules:
    """What a pod may reach; nothing may reach it.

    Args:
        open: no rules at all: everything, and from everywhere.
        cidrs: blocks of addresses.
        domains: names; they are looked up when the pod is made, and have these addresses in it.
        ports: ``443``, ``53/UDP``: of the addresses above; empty = all.
        dns: the cluster's name service.
    """

    open: bool = False
    cidrs: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    dns: bool = False


@dataclass(frozen=True, slots=True)
class PodSpec:
    """The pod of a sample.

    Args:
        containers: the first is the sample's default sandbox.
        place: where it is made.
        network: what it may reach.
        start_timeout: seconds that it may take to run; 0 = for ever.
        node_selector: labels that its node must have.
        tolerations: in Kubernetes' form.
        affinity: in Kubernetes' form.
        service_account: ``None`` = the namespace's default one.
        service_account_token: whether the account's token is in the pod.
        runtime_class: such as ``gvisor``.
        priority_class: name of a priority class.
        image_pull_secrets: names of secrets.
        volumes: in Kubernetes' form; ``emptyDir``, ``configMap``, ``secret`` and ``projected`` ones.
        security_context: of the pod, in Kubernetes' form.
        active_deadline: seconds after which the cluster ends it, whatever becomes of this process.
        labels: added to those that say whose it is.
        annotations: the same.
    """

    containers: tuple[ContainerSpec, ...]
    place: Place = Place()
    network: NetworkRules = NetworkRules()
    start_timeout: float = START_TIMEOUT
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    affinity: Mapping[str, Any] | None = None
    service_account: str | None = None
    service_account_token: bool = False
    runtime_class: str | None = None
    priority_class: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    volumes: tuple[Mapping[str, Any], ...] = ()
    security_context: Mapping[str, Any] | None = None
    active_deadline: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
