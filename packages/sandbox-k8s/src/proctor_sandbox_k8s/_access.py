"""Whether a cluster would do what will be asked of it: found out before anything is paid for."""

from __future__ import annotations

import contextlib
from typing import Any

from proctor.contracts import PrerequisiteError
from proctor_sandbox_k8s._cluster import Cluster, Refused, Unreachable
from proctor_sandbox_k8s._spec import NetworkRules

__all__ = ["check_access"]

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_NEEDED = (
    ("create", "", "pods", ""),
    ("watch", "", "pods", ""),
    ("delete", "", "pods", ""),
    ("create", "", "pods", "exec"),
    ("get", "", "pods", "exec"),
)
_POLICY = ("create", "networking.k8s.io", "networkpolicies", "")


def check_access(cluster: Cluster, namespace: str, rules: NetworkRules) -> None:
    """Ask whether the cluster answers, has the namespace, and lets this user make pods in it; in a worker thread.

    Raises:
        PrerequisiteError: if not; the message says what is missing.
    """
    try:
        cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods", {"limit": "1"}, timeout=10.0, patience=5.0)
        with contextlib.suppress(Refused):  # many may not look at namespaces
            cluster.request("GET", f"/api/v1/namespaces/{namespace}", timeout=10.0, patience=5.0)
    except Unreachable as error:
        raise PrerequisiteError(
            f"sandbox 'k8s': the cluster of {_context(cluster)} does not answer: {error}. Does `kubectl get pods` work?"
        ) from None
    except Refused as error:
        what = "does not know this user" if error.status == 401 else f"does not let pods in {namespace} be listed"
        raise PrerequisiteError(f"sandbox 'k8s': the cluster of {_context(cluster)} {what}: {error}") from None
    _check_namespace(cluster, namespace)
    needed = _NEEDED if rules.open else (*_NEEDED, _POLICY)
    if denied := [each for each in needed if not _allowed(cluster, namespace, each)]:
        told = ", ".join(f"{verb} {'/'.join(filter(None, (resource, sub)))}" for verb, _, resource, sub in denied)
        hint = "; or say `network: open`" if _POLICY in denied else ""
        raise PrerequisiteError(
            f"sandbox 'k8s': the cluster of {_context(cluster)} does not let this user {told} in namespace "
            f"{namespace}: its role needs that{hint}"
        )


def _check_namespace(cluster: Cluster, namespace: str) -> None:
    try:
        cluster.request("GET", f"/api/v1/namespaces/{namespace}", timeout=10.0, patience=5.0)
    except Refused as error:
        if error.status == 404:
            raise PrerequisiteError(
                f"sandbox 'k8s': {_context(cluster)} has no namespace {namespace}: kubectl create namespace {namespace}"
            ) from None
    except Unreachable:  # it has just answered: whoever asks next will see
        return


def _allowed(cluster: Cluster, namespace: str, needed: tuple[str, str, str, str]) -> bool:
    verb, group, resource, subresource = needed
    asked: dict[str, Any] = {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
    if subresource:
        asked["subresource"] = subresource
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    try:
        told = cluster.request("POST", _REVIEWS, body=body, timeout=10.0, patience=5.0)
    except (Refused, Unreachable):  # it does not say: the pod itself will
        return True
    return bool(told.get("status", {}).get("allowed", True))


def _context(cluster: Cluster) -> str:
    return f"context {cluster.context!r}" if cluster.context else "this pod"
