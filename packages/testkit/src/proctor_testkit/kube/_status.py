"""What a pod's status says of its containers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proctor_testkit.kube._backing import Container, Ended
from proctor_testkit.kube._store import Obj
from proctor_testkit.kube._validation import now

__all__ = ["ContainerState", "pod_status"]


@dataclass(slots=True)
class ContainerState:
    """A container of a pod, over all its restarts."""

    spec: Obj
    init: bool = False
    running: Container | None = None
    previous: Container | None = None
    state: Obj = field(default_factory=lambda: {"waiting": {"reason": "PodInitializing"}})
    last: Obj = field(default_factory=dict)
    restarts: int = 0
    ready: bool = False
    final: bool = False
    """It has ended and is not started again."""

    @property
    def name(self) -> str:
        """As its pod calls it."""
        return str(self.spec["name"])

    @property
    def code(self) -> int | None:
        """Its exit code, when it has ended."""
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])

    def wait_for(self, reason: str, message: str = "") -> None:
        """It is not there yet, or not any more."""
        self.ready = False
        self.state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}

    def begin(self, container: Container, ready: bool) -> None:
        """It runs."""
        self.running = container
        self.ready = ready
        self.state = {"running": {"startedAt": now()}}

    def end(self, ended: Ended, message: str = "") -> None:
        """It has ended."""
        began = self.state.get("running", {}).get("startedAt", now())
        said: Obj = {"exitCode": ended.code, "reason": ended.reason, "startedAt": began, "finishedAt": now()}
        if message:
            said["message"] = message
        if self.running is not None:
            said["containerID"] = _id(self.running)
        self.ready = False
        self.state = {"terminated": said}

    def status(self) -> Obj:
        """Its part of the pod's status."""
        known = self.running
        return {
            "name": self.name,
            "image": self.spec["image"],
            "imageID": f"docker://{self.spec['image']}" if known else "",
            **({"containerID": _id(known)} if known else {}),
            "state": self.state,
            "lastState": self.last,
            "ready": self.ready,
            "started": "running" in self.state,
            "restartCount": self.restarts,
        }


def _id(container: Container) -> str:
    return f"docker://{container.id}"


def pod_status(before: Obj, states: list[ContainerState], address: str, *, scheduled: bool) -> Obj:
    """The status after ``before``, with the times at which its conditions changed."""
    main = [one for one in states if not one.init]
    init = [one for one in states if one.init]
    initialized = scheduled and all(one.code == 0 for one in init)
    ended = all(one.final for one in main)
    ready = not ended and all(one.ready for one in main)
    if ended:
        phase = "Failed" if any(one.code for one in main) else "Succeeded"
    elif any(one.final and one.code for one in init):
        phase = "Failed"
    else:
        phase = "Running" if any("waiting" not in one.state or one.restarts for one in main) else "Pending"
    why = {} if ready else {"reason": "PodCompleted" if ended else "ContainersNotReady"}
    if why and not ended:
        names = " ".join(one.name for one in main if not one.ready)
        why["message"] = f"containers with unready status: [{names}]"
    conditions = [
        ("PodReadyToStartContainers", scheduled and not ended and bool(address or ready), {}),
        ("Initialized", initialized, {}),
        ("Ready", ready, why),
        ("ContainersReady", ready, why),
        ("PodScheduled", scheduled, {}),
    ]
    known = {one["type"]: one for one in before.get("conditions") or []}
    made: Obj = {
        **{key: value for key, value in before.items() if key in ("qosClass", "reason", "message", "startTime")},
        "phase": phase,
        "conditions": [_condition(known.get(name, {}), name, holds, more) for name, holds, more in conditions],
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "containerStatuses": [one.status() for one in main],
    }
    made.setdefault("startTime", now())
    if init:
        made["initContainerStatuses"] = [one.status() for one in init]
    if address:
        made |= {"podIP": address, "podIPs": [{"ip": address}]}
    return made


def _condition(before: Obj, name: str, holds: bool, more: dict[str, Any]) -> Obj:
    said = "True" if holds else "False"
    at = before["lastTransitionTime"] if before.get("status") == said else now()
    return {"type": name, "status": said, "lastProbeTime": None, "lastTransitionTime": at, **more}
