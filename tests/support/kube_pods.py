"""Pods for the tests of the fake Kubernetes."""

from __future__ import annotations

from typing import Any

__all__ = ["IMAGE", "pod"]

IMAGE = "proctor-busybox:latest"
_WAITS = ["sh", "-c", "echo ready; trap 'exit 0' TERM; sleep 1000 & wait"]


def pod(name: str, command: list[str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod of one container that waits until it is stopped, unless another command is named."""
    container = {"name": "main", "image": IMAGE, "command": command or _WAITS}
    made = {"terminationGracePeriodSeconds": 2, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": made}
