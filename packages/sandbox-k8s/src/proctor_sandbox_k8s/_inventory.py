"""What Proctor has in a cluster: pods, and the network policies that hold for them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from proctor.contracts import RunningSandbox
from proctor_sandbox_k8s._cluster import Cluster, Refused
from proctor_sandbox_k8s._owner import owner_of, selector
from proctor_sandbox_k8s._removal import delete_path
from proctor_sandbox_k8s._sandbox import connection_of
from proctor_sandbox_k8s._state import is_ready, summary
from proctor_sandbox_k8s._threads import Threads

__all__ = ["find_all", "removed"]

_POLICY = "networkpolicy"
_PAGE = 500


def find_all(cluster: Cluster) -> list[RunningSandbox]:
    """All of it, in every namespace, or in the one of the context if only that may be looked into.

    Raises:
        Refused, Unreachable: the cluster does not say.
    """
    pods = [_pod(cluster, each) for each in _listed(cluster, "/api/v1", "pods")]
    try:
        policies = _listed(cluster, "/apis/networking.k8s.io/v1", "networkpolicies")
    except Refused:  # who may not see them has made none
        policies = []
    return pods + [_policy(each) for each in policies]


async def removed(threads: Threads, cluster: Cluster, id: str) -> bool:
    """Delete what ``find_all`` told of; whether it is gone.

    Raises:
        LookupError: it is not there, or not Proctor's.
        Refused, Unreachable: the cluster does not let it be deleted, or does not say.
    """
    *kind, namespace, name = id.split("/") if id.count("/") in (1, 2) else ("", cluster.namespace, id)
    root = "/apis/networking.k8s.io/v1" if kind == [_POLICY] else "/api/v1"
    plural = "networkpolicies" if kind == [_POLICY] else "pods"
    path = f"{root}/namespaces/{namespace}/{plural}/{name}"
    try:
        found = await threads.call(lambda: cluster.request("GET", path))
    except Refused as error:
        if error.status == 404:
            raise LookupError(id) from None
        raise
    key, value = selector().split("=")
    if (found["metadata"].get("labels") or {}).get(key) != value:
        raise LookupError(id)
    return await delete_path(threads, cluster, path, found["metadata"]["uid"])


def _listed(cluster: Cluster, root: str, plural: str) -> list[Any]:
    try:
        return _pages(cluster, f"{root}/{plural}")
    except Refused as error:
        if error.status != 403:
            raise
        return _pages(cluster, f"{root}/namespaces/{cluster.namespace}/{plural}")


def _pages(cluster: Cluster, path: str) -> list[Any]:
    found: list[Any] = []
    query = {"labelSelector": selector(), "limit": str(_PAGE)}
    while True:
        page = cluster.request("GET", path, query)
        found += page.get("items") or []
        token = page["metadata"].get("continue")
        if not token:
            return found
        query = {**query, "continue": token}


def _pod(cluster: Cluster, pod: Any) -> RunningSandbox:
    about = pod["metadata"]
    namespace, name = about["namespace"], about["name"]
    containers = pod["spec"]["containers"]
    inside = containers[0]["name"] if containers else None
    return RunningSandbox(
        id=f"{namespace}/{name}",
        owner=owner_of(pod),
        state=summary(pod),
        created=_time(about.get("creationTimestamp")),
        connection=connection_of(cluster.context, namespace, name, inside) if is_ready(pod) else None,
    )


def _policy(policy: Any) -> RunningSandbox:
    about = policy["metadata"]
    return RunningSandbox(
        id=f"{_POLICY}/{about['namespace']}/{about['name']}",
        owner=owner_of(policy),
        state="network policy",
        created=_time(about.get("creationTimestamp")),
        connection=None,
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
