"""What else may stand against a new object: its namespace, its service account, a runtime class, quotas."""

from __future__ import annotations

from proctor_testkit.kube._errors import forbidden, not_found
from proctor_testkit.kube._quantity import quantity, requested, spelled
from proctor_testkit.kube._store import Obj, Store
from proctor_testkit.kube._types import KINDS, Kind

__all__ = ["admit", "show_quotas"]

_NAMESPACES, _PODS = KINDS["", "namespaces"], KINDS["", "pods"]
_QUOTAS, _ACCOUNTS = KINDS["", "resourcequotas"], KINDS["", "serviceaccounts"]
_CLASSES = KINDS["node.k8s.io", "runtimeclasses"]


def admit(store: Store, kind: Kind, obj: Obj) -> None:
    """Refuse an object that may not be made now.

    Raises:
        ApiError: if it is refused.
    """
    about = obj["metadata"]
    if not kind.namespaced:
        return
    home = store.get(_NAMESPACES, "", about["namespace"])
    if home is None:
        raise not_found("namespaces", about["namespace"])
    if home["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {about['namespace']} because it is being terminated"
        raise forbidden(kind.plural, about["name"], why)
    if kind == _PODS:
        _admit_pod(store, obj)


def _admit_pod(store: Store, pod: Obj) -> None:
    about, spec = pod["metadata"], pod["spec"]
    namespace, name = about["namespace"], about["name"]
    account = spec["serviceAccountName"]
    if store.get(_ACCOUNTS, namespace, account) is None:
        where = f'{namespace}/{account}: serviceaccount "{account}" not found'
        raise forbidden("pods", name, f"error looking up service account {where}")
    chosen = spec.get("runtimeClassName")
    if chosen and store.get(_CLASSES, "", chosen) is None:
        raise forbidden("pods", name, f'pod rejected: RuntimeClass "{chosen}" not found')
    for quota in store.all(_QUOTAS, namespace):
        _admit_quota(store, pod, quota)


def _admit_quota(store: Store, pod: Obj, quota: Obj) -> None:
    name, hard = quota["metadata"]["name"], (quota.get("spec") or {}).get("hard") or {}
    asked = {resource: _asked(pod, resource) for resource in hard}
    if missing := sorted(resource for resource, amount in asked.items() if amount is None):
        raise forbidden("pods", pod["metadata"]["name"], f"failed quota: {name}: must specify {','.join(missing)}")
    used = _used(store, quota)
    over = [
        resource for resource, amount in asked.items() if amount and used[resource] + amount > quantity(hard[resource])
    ]
    if over:
        told = [
            ",".join(f"{resource}={amount}" for resource, amount in one)
            for one in (
                [(resource, spelled(asked[resource] or 0)) for resource in over],
                [(resource, spelled(used[resource])) for resource in over],
                [(resource, hard[resource]) for resource in over],
            )
        ]
        why = f"exceeded quota: {name}, requested: {told[0]}, used: {told[1]}, limited: {told[2]}"
        raise forbidden("pods", pod["metadata"]["name"], why)


def _asked(pod: Obj, resource: str) -> float | None:
    """What a pod takes of a quota: 0 if it has nothing to do with pods, None if the pod must say it and does not."""
    if resource in ("pods", "count/pods"):
        return 1.0
    side, _, name = resource.rpartition(".")
    if name in ("cpu", "memory") and side in ("", "requests", "limits"):
        return requested(pod, side or "requests", name)
    return 0.0


def _used(store: Store, quota: Obj) -> dict[str, float]:
    hard = (quota.get("spec") or {}).get("hard") or {}
    pods = [
        pod
        for pod in store.all(_PODS, quota["metadata"]["namespace"])
        if pod["status"]["phase"] not in ("Succeeded", "Failed")
    ]
    return {resource: sum(_asked(pod, resource) or 0 for pod in pods) for resource in hard}


def show_quotas(store: Store, quota: Obj) -> Obj:
    """A quota with what is used of it now."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    used = {resource: spelled(amount) for resource, amount in _used(store, quota).items()}
    return {**quota, "status": {"hard": hard, "used": used}}
