"""What a pod's object says: whether it runs, what it waits for, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["hopeless", "is_ready", "problem", "summary", "waits_for"]

_HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
"""Reasons for waiting that go away only with another configuration."""
# What the whole pod has met with, of which the ends of its containers are only a part.
_TOLD = {"Evicted": "it was evicted from its node", "DeadlineExceeded": "its activeDeadlineSeconds are over"}


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether all of its containers run and are ready."""
    statuses = list(_statuses(pod))
    wanted = len(pod.get("spec", {}).get("containers", []))
    return _phase(pod) == "Running" and len(statuses) >= wanted and all(each.get("ready") for each in statuses)


def problem(pod: Mapping[str, Any], uid: str | None = None) -> str | None:
    """Why it can't be used any more; ``None`` while it can, or will be able to.

    Args:
        pod: its object.
        uid: of the pod that was made; another one of the same name is another pod.
    """
    about, status = pod.get("metadata", {}), pod.get("status", {})
    if uid is not None and about.get("uid") != uid:
        return "it was replaced by another pod of the same name"
    if _phase(pod) == "Failed" and status.get("reason") in _TOLD:
        return _with(_TOLD[status["reason"]], status.get("message"))
    for each in _statuses(pod):
        ended = each.get("state", {}).get("terminated") or each.get("lastState", {}).get("terminated")
        if ended and (each.get("restartCount") or "terminated" in each.get("state", {})):
            return _ended(each, ended)
    if _phase(pod) in ("Failed", "Succeeded"):
        return _with(f"it has ended ({status.get('reason') or _phase(pod)})", status.get("message"))
    if about.get("deletionTimestamp"):
        return "it is being deleted"
    return None


def waits_for(pod: Mapping[str, Any]) -> str:
    """What it waits for, in the cluster's own words."""
    for each in _statuses(pod):
        waiting = each.get("state", {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return _with(f"{each.get('name')}: {waiting['reason']}", waiting.get("message"))
    for each in pod.get("status", {}).get("conditions", []):
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return _with(each.get("reason") or "not scheduled", each.get("message"))
    if not pod.get("spec", {}).get("nodeName"):
        return "Pending: no node was chosen yet"
    if _phase(pod) == "Running":
        late = ", ".join(str(each.get("name")) for each in _statuses(pod) if not each.get("ready"))
        return f"Running, but not ready: {late}"
    return f"{_phase(pod)}: containers are being created"


def hopeless(pod: Mapping[str, Any]) -> bool:
    """Whether waiting can't help."""
    return any((each.get("state", {}).get("waiting") or {}).get("reason") in _HOPELESS for each in _statuses(pod))


def summary(pod: Mapping[str, Any] | None) -> str:
    """Its state in a few words."""
    if pod is None:
        return "gone"
    if pod.get("metadata", {}).get("deletionTimestamp"):
        return "being deleted"
    said = problem(pod)
    if said:
        return f"{_phase(pod)}, {said}"
    return "Running" if is_ready(pod) else waits_for(pod)


def _ended(status: Mapping[str, Any], ended: Mapping[str, Any]) -> str:
    code, reason = ended.get("exitCode"), ended.get("reason")
    what = f"its container {status.get('name')}"
    if reason == "OOMKilled":
        text = f"{what} used more memory than its limit and was killed (OOMKilled)"
    else:
        text = f"{what} ended with exit code {code}" + (f" ({reason})" if reason not in (None, "Error") else "")
    if status.get("restartCount"):
        text += ", and was started again: what was in it is lost"
    return _with(text, ended.get("message"))


def _statuses(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from pod.get("status", {}).get("containerStatuses") or []


def _phase(pod: Mapping[str, Any]) -> str:
    return str(pod.get("status", {}).get("phase") or "Pending")


def _with(text: str, message: Any) -> str:
    return f"{text}: {str(message).strip()}" if message else text
