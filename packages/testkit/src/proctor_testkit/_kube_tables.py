"""Objects as tables: what ``kubectl get`` prints is made by the server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from proctor_testkit._kube_store import Obj
from proctor_testkit._kube_types import Kind

__all__ = ["pod_word", "table"]

_ABOUT = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}


def table(kind: Kind, objects: list[Obj], about: Obj, *, columns: bool = True) -> Obj:
    """A Table of the objects, with the metadata of the list; without its ``columns`` later in a watch."""
    known: dict[str, Callable[[Obj], list[Any]]] = {
        "pods": _pod,
        "namespaces": lambda obj: [(obj.get("status") or {}).get("phase", "")],
        "configmaps": lambda obj: [len(obj.get("data") or {}) + len(obj.get("binaryData") or {})],
        "secrets": lambda obj: [obj.get("type", ""), len(obj.get("data") or {})],
        "events": lambda obj: [
            obj.get("type", ""),
            obj.get("reason", ""),
            f"pod/{(obj.get('involvedObject') or {}).get('name', '')}",
            obj.get("message", ""),
        ],
    }
    titles = {
        "pods": ["Ready", "Status", "Restarts"],
        "namespaces": ["Status"],
        "configmaps": ["Data"],
        "secrets": ["Type", "Data"],
        "events": ["Type", "Reason", "Object", "Message"],
    }
    cells = known.get(kind.plural, lambda obj: [])
    heads = ["Name", *titles.get(kind.plural, []), "Age"]
    wide = ["IP", "Node"] if kind.plural == "pods" else []
    defined = [{"name": name, "type": "string", "format": "name" if name == "Name" else ""} for name in [*heads, *wide]]
    for number, one in enumerate(defined):
        one |= {"description": one["name"], "priority": 1 if number >= len(heads) else 0}  # type: ignore[dict-item]
    rows = [
        {
            "cells": [obj["metadata"]["name"], *cells(obj), _age(obj), *(_wide(obj) if wide else [])],
            "object": {**_ABOUT, "metadata": obj["metadata"]},
        }
        for obj in objects
    ]
    made = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": about, "rows": rows}
    return {**made, "columnDefinitions": defined if columns else []}


def pod_word(pod: Obj) -> str:
    """The one word that says how a pod is."""
    status = pod["status"]
    word = status.get("reason") or status["phase"]
    for one in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state = one["state"]
        if (waiting := state.get("waiting")) and waiting.get("reason"):
            word = waiting["reason"]
        elif (ended := state.get("terminated")) and status["phase"] != "Succeeded":
            word = ended.get("reason") or f"ExitCode:{ended['exitCode']}"
        elif ended and status["phase"] == "Succeeded":
            word = "Completed"
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else str(word)


def _pod(pod: Obj) -> list[Any]:
    states = pod["status"].get("containerStatuses") or []
    ready = sum(one["ready"] for one in states)
    restarts = sum(one["restartCount"] for one in states)
    return [f"{ready}/{len(pod['spec']['containers'])}", pod_word(pod), str(restarts)]


def _wide(pod: Obj) -> list[str]:
    return [pod["status"].get("podIP") or "<none>", pod["spec"].get("nodeName") or "<none>"]


def _age(obj: Obj) -> str:
    made = obj["metadata"].get("creationTimestamp")
    if not made:
        return "<unknown>"
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(made)).total_seconds())
    if seconds < 120:
        return f"{seconds}s"
    return f"{seconds // 60}m" if seconds < 7200 else f"{seconds // 3600}h"
