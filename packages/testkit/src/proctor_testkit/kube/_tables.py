"""Objects as tables: what ``kubectl get`` prints is made by the server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from proctor_testkit.kube._store import Obj
from proctor_testkit.kube._types import Kind

__all__ = ["pod_word", "table"]

_ABOUT = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}


def table(kind: Kind, objects: list[Obj], about: Obj, *, columns: bool = True) -> Obj:
    """A Table of the objects, with the metadata of the list; without its ``columns`` later in a watch."""
    shown = [("Name", lambda obj: obj["metadata"]["name"], 0), *_COLUMNS.get(kind.plural, ()), ("Age", _age, 0)]
    defined = [
        {"name": name, "type": "string", "format": "name" if name == "Name" else "", "description": name, "priority": p}
        for name, _, p in sorted(shown, key=lambda one: one[2])
    ]
    rows = [
        {
            "cells": [cell(obj) for _, cell, _ in sorted(shown, key=lambda one: one[2])],
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


def _ready(pod: Obj) -> str:
    states = pod["status"].get("containerStatuses") or []
    return f"{sum(one['ready'] for one in states)}/{len(pod['spec']['containers'])}"


def _restarts(pod: Obj) -> str:
    return str(sum(one["restartCount"] for one in pod["status"].get("containerStatuses") or []))


def _count(*names: str) -> Callable[[Obj], str]:
    return lambda obj: str(sum(len(obj.get(name) or {}) for name in names))


def _text(*path: str) -> Callable[[Obj], str]:
    def find(obj: Obj) -> str:
        found: Any = obj
        for name in path:
            found = (found or {}).get(name)
        return str(found or "<none>")

    return find


def _age(obj: Obj) -> str:
    made = obj["metadata"].get("creationTimestamp")
    if not made:
        return "<unknown>"
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(made)).total_seconds())
    if seconds < 120:
        return f"{seconds}s"
    return f"{seconds // 60}m" if seconds < 7200 else f"{seconds // 3600}h"


# The columns between name and age: the title, the cell, and whether it is shown only when it may be wide (1).
_COLUMNS: dict[str, list[tuple[str, Callable[[Obj], str], int]]] = {
    "pods": [
        ("Ready", _ready, 0),
        ("Status", pod_word, 0),
        ("Restarts", _restarts, 0),
        ("IP", _text("status", "podIP"), 1),
        ("Node", _text("spec", "nodeName"), 1),
    ],
    "namespaces": [("Status", _text("status", "phase"), 0)],
    "configmaps": [("Data", _count("data", "binaryData"), 0)],
    "secrets": [("Type", _text("type"), 0), ("Data", _count("data"), 0)],
    "events": [
        ("Type", _text("type"), 0),
        ("Reason", _text("reason"), 0),
        ("Object", _text("involvedObject", "name"), 0),
        ("Message", _text("message"), 0),
    ],
}
