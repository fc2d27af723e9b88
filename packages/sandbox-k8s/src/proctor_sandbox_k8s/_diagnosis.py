"""Why a sandbox is broken: what the cluster says of its pod, its events, and the end of its log."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from proctor.contracts import SandboxBrokenError
from proctor_sandbox_k8s._cluster import Refused, Unreachable
from proctor_sandbox_k8s._pods import Pods, Watched
from proctor_sandbox_k8s._state import problem, summary

__all__ = ["broken", "events_of"]

_LINES = 20
_EVENTS = 5


def broken(pods: Pods, watched: Watched, what: str, container: str = "") -> SandboxBrokenError:
    """The error that says what happened, with the pod's state, events and last lines; in a worker thread.

    Args:
        pods: where the pod is.
        watched: the pod.
        what: what was tried, and how that ended.
        container: whose log is wanted.
    """
    answered = True
    try:
        pods.look(watched)
    except (Refused, Unreachable) as error:
        answered, reason = False, str(error)
    pod = watched.pod
    why = watched.problem()
    name = f"pod {pods.namespace}/{watched.name}"
    if not answered:
        return SandboxBrokenError(f"{what}; and the cluster does not say how {name} is: {reason}", summary(pod))
    text = f"{name}: {why}" if why else f"{what} ({name} itself is sound)"
    state = "gone" if watched.gone else summary(pod)
    if told := events_of(pods, watched):
        state += f"; events: {told}"
    return SandboxBrokenError(text, state, _log_of(pods, watched, container, pod))


def events_of(pods: Pods, watched: Watched) -> str:
    """The last things that the cluster has noted of a pod, other than that all went well."""
    path = f"/api/v1/namespaces/{pods.namespace}/events"
    query = {"fieldSelector": f"involvedObject.name={watched.name}"}
    items: list[Any] = []
    with contextlib.suppress(Refused, Unreachable):
        items = pods.cluster.request("GET", path, query, patience=2.0, timeout=10.0).get("items") or []
    told = [f"{each.get('reason')}: {each.get('message')}" for each in items if each.get("type") == "Warning"]
    return "; ".join(dict.fromkeys(told[-_EVENTS:]))


def _log_of(pods: Pods, watched: Watched, container: str, pod: Mapping[str, Any] | None) -> str:
    if watched.gone or pod is None or (watched.uid and "replaced" in (problem(pod, watched.uid) or "")):
        return ""
    query = {"tailLines": str(_LINES), **({"container": container} if container else {})}
    with contextlib.suppress(Refused, Unreachable):
        return pods.cluster.text(f"{pods.path}/{watched.name}/log", query)
    return ""
