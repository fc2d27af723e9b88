"""Makes the pods of a run's samples, and takes them away."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from proctor.contracts import (
    RunningSandbox,
    SandboxBrokenError,
    SandboxDriver,
    SandboxEnvironment,
    UsageError,
)
from proctor.sandbox import sandbox_owner
from proctor_sandbox_k8s._access import check_access
from proctor_sandbox_k8s._cluster import Cluster, Refused, Unreachable, connect
from proctor_sandbox_k8s._command import Target
from proctor_sandbox_k8s._inventory import find_all, removed
from proctor_sandbox_k8s._making import PodMaker
from proctor_sandbox_k8s._manifest import network_policy, pod_manifest, pod_name, policy_name
from proctor_sandbox_k8s._metadata import names_metadata, with_metadata
from proctor_sandbox_k8s._pods import Pods, Watched
from proctor_sandbox_k8s._reading import read_spec
from proctor_sandbox_k8s._removal import delete, remove_pod
from proctor_sandbox_k8s._sandbox import KubernetesSandbox
from proctor_sandbox_k8s._source import read_source
from proctor_sandbox_k8s._spec import NetworkRules, Place, PodSpec
from proctor_sandbox_k8s._threads import Threads

__all__ = ["KubernetesDriver"]

_log = logging.getLogger("proctor.sandbox.k8s")
_POLICIES = "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"


class KubernetesDriver(SandboxDriver):
    """Makes a pod for each sample."""

    def __init__(self) -> None:
        self._id = secrets.token_hex(4)
        self._threads = Threads()
        self._maker = PodMaker(self._threads)
        self._clusters: dict[Place, Cluster] = {}
        self._connecting: dict[Place, anyio.Lock] = {}
        self._pods: dict[tuple[Cluster, str], Pods] = {}
        self._policies: dict[tuple[Pods, str], anyio.Lock] = {}
        self._made: set[tuple[Pods, str]] = set()
        self._hosts: dict[str, tuple[str, ...]] = {}
        self._tasks = 0

    async def check(self, config: Any) -> None:
        """Read the configuration, and ask the cluster whether it would make such pods."""
        tree = await self._threads.call(lambda: read_source(config))
        if names_metadata(tree.values):
            # What a sample says can't be read yet; where its pods go is said by the task.
            place = Place(*(_said(tree.values.get(name)) for name in ("context", "namespace")))
            rules = NetworkRules(open=tree.values.get("network") == "open")
        else:
            spec = read_spec(tree)
            place, rules = spec.place, spec.network
        cluster = await self._cluster(place)
        await self._threads.call(lambda: check_access(cluster, place.namespace or cluster.namespace, rules))

    async def task_init(self, task: str, config: Any) -> None:
        """Look whether the cluster is there."""
        await self.check(config)
        self._tasks += 1

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """Make the pod of a sample, and wait until it runs."""
        spec = await self._threads.call(lambda: read_spec(with_metadata(read_source(config), metadata)))
        cluster = await self._cluster(spec.place)
        pods = self._of(cluster, spec.place.namespace or cluster.namespace)
        hosts = {name: await self._addresses(name) for name in spec.network.domains}
        policy = None if spec.network.open else await self._policy(pods, spec.network, hosts)
        name = pod_name(task)
        manifest = pod_manifest(spec, name, sandbox_owner(), self._id, policy, hosts)
        watched = pods.add(name)
        try:
            directories = await self._maker.make(pods, watched, spec, manifest)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await remove_pod(self._threads, pods, watched, quick=True)
            raise
        return self._sandboxes(pods, watched, spec, directories)

    def _sandboxes(
        self, pods: Pods, watched: Watched, spec: PodSpec, directories: Mapping[str, str]
    ) -> dict[str, SandboxEnvironment]:
        return {
            each.name: KubernetesSandbox(Target(pods, watched, each.name), directories[each.name], self._threads)
            for each in spec.containers
        }

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """Delete the pod, and wait until it is gone."""
        targets = {each.target.watched: each.target for each in envs.values() if isinstance(each, KubernetesSandbox)}
        for watched, target in targets.items():
            await remove_pod(self._threads, target.pods, watched, quick=interrupted)

    async def task_cleanup(self, task: str, config: Any, cleanup: bool) -> None:
        """With the last task go the network policies, and pods that would not go before."""
        self._tasks -= 1
        if self._tasks > 0:
            return
        for pods in list(self._pods.values()):
            for watched in pods.all():
                if cleanup:
                    await remove_pod(self._threads, pods, watched, quick=True)
                else:
                    pods.drop(watched)
        if cleanup:
            await self._remove_policies()
        for cluster in self._clusters.values():
            cluster.rest()

    async def sandboxes(self) -> list[RunningSandbox]:
        """The pods that Proctor made in the kubeconfig's cluster, in all namespaces that may be looked into."""
        clusters = {id(each): each for each in (await self._cluster(Place()), *self._clusters.values())}
        found: dict[str, RunningSandbox] = {}
        for cluster in clusters.values():
            try:
                listed = await self._threads.call(partial(find_all, cluster))
            except (Refused, Unreachable) as error:
                raise UsageError(f"sandbox 'k8s': the cluster can't be asked for its pods: {error}") from None
            found |= {each.id: each for each in listed}
        return list(found.values())

    async def remove(self, ids: Sequence[str]) -> list[str]:
        """Delete pods and network policies, and wait until they are gone."""
        cluster = await self._cluster(Place())
        gone: list[str] = []
        left: list[str] = []
        for each in ids:
            try:
                (gone if await removed(self._threads, cluster, each) else left).append(each)
            except LookupError:
                continue
            except (Refused, Unreachable) as error:
                left.append(f"{each} ({error})")
        if left:
            raise SandboxBrokenError(f"not removed from the cluster: {', '.join(left)}")
        return gone

    async def _cluster(self, place: Place) -> Cluster:
        async with self._connecting.setdefault(place, anyio.Lock()):
            if place not in self._clusters:
                self._clusters[place] = await self._threads.call(lambda: connect(place))
            return self._clusters[place]

    def _of(self, cluster: Cluster, namespace: str) -> Pods:
        key = (cluster, namespace)
        if key not in self._pods:
            self._pods[key] = Pods(cluster, namespace, self._id)
        return self._pods[key]

    async def _addresses(self, name: str) -> tuple[str, ...]:
        """The addresses of a name that pods may reach; looked up once, so that all samples get the same."""
        if name not in self._hosts:
            try:
                found = await self._threads.call(lambda: socket.getaddrinfo(name, None, type=socket.SOCK_STREAM))
            except OSError as error:
                raise UsageError(f"sandbox 'k8s': network.domains: {name} has no address: {error}") from None
            self._hosts[name] = tuple(dict.fromkeys(str(each[4][0]) for each in found))
        return self._hosts[name]

    async def _policy(self, pods: Pods, rules: NetworkRules, hosts: Mapping[str, tuple[str, ...]]) -> str:
        """Have the policy that holds for pods with these rules, before the first of them is there."""
        name = policy_name(rules, hosts, self._id)
        key = (pods, name)
        async with self._policies.setdefault(key, anyio.Lock()):
            if key in self._made:
                return name
            owner = replace(sandbox_owner(), sample="", epoch=0)  # several samples share it
            body = network_policy(rules, name, owner, self._id, hosts)
            path = _POLICIES.format(pods.namespace)
            try:
                await self._threads.call(lambda: pods.cluster.request("POST", path, body=body))
            except Refused as error:
                if error.status != 409:
                    raise UsageError(
                        f"sandbox 'k8s': no network policy could be made in namespace {pods.namespace}: {error}; "
                        "the user's role needs create and delete of networkpolicies; or say `network: open`"
                    ) from None
            except Unreachable as error:
                raise SandboxBrokenError(f"no network policy could be made: {error}") from None
            self._made.add(key)
        return name

    async def _remove_policies(self) -> None:
        for pods, name in list(self._made):
            path = f"{_POLICIES.format(pods.namespace)}/{name}"
            try:
                await self._threads.call(partial(delete, pods.cluster, path, None, None))
                self._made.discard((pods, name))
            except (Refused, Unreachable) as error:
                _log.warning("network policy %s/%s is not removed: %s", pods.namespace, name, error)


def _said(value: Any) -> str | None:
    return value if isinstance(value, str) and not names_metadata(value) else None
