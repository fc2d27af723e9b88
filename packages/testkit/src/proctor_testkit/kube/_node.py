"""The one node of the fake Kubernetes: which pods run on it, what room it has, and how it fails."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from proctor_testkit.kube._backing import Backing, PullError
from proctor_testkit.kube._pods import PodRun
from proctor_testkit.kube._quantity import requested
from proctor_testkit.kube._store import Obj, Store
from proctor_testkit.kube._types import KINDS
from proctor_testkit.kube._validation import now
from proctor_testkit.kube._wire import Connection

__all__ = ["NODE", "Node"]

NODE = "fake-node"
_PODS, _NODES, _EVENTS = KINDS["", "pods"], KINDS["", "nodes"], KINDS["", "events"]


class Node:
    """Runs pods, in the loop of the server.

    Attributes:
        starts: set while pods may start.
        deletes: set while pods that are deleted come to an end.
        lost: whether the control plane hears nothing of the node.
        missing: images that are not there, with what is said of each.
        unschedulable: why no pod finds a place; "" when there is place.
        streams: the connections of commands and logs, by the uid of their pod.
        errors: faults of the fake itself, which nobody asked for.
    """

    def __init__(self, store: Store, backing: Backing, *, pods: int, cpus: float, memory: float) -> None:
        self.store = store
        self.backing = backing
        self.room = {"cpu": cpus, "memory": memory}
        self.most = pods
        self.restart_delay = 0.05
        self.retry_delay = 0.1
        self.starts, self.deletes = asyncio.Event(), asyncio.Event()
        self.starts.set()
        self.deletes.set()
        self.lost = False
        self.missing: dict[str, str] = {}
        self.unschedulable = ""
        self.pause = ""
        self.streams: dict[str, set[Connection]] = {}
        self.errors: list[Exception] = []
        self._runs: dict[str, PodRun] = {}
        self._placed: set[str] = set()
        self._changed = asyncio.Event()
        self.show()

    def show(self) -> None:
        """Write the node's own object."""
        before = self.store.get(_NODES, "", NODE)
        labels = {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        room = {"cpu": str(self.room["cpu"]), "memory": str(int(self.room["memory"])), "pods": str(self.most)}
        ready = {"type": "Ready", "status": "Unknown" if self.lost else "True", "lastTransitionTime": now()}
        ready["reason"] = "NodeStatusUnknown" if self.lost else "KubeletReady"
        about = {"name": NODE, "labels": labels, "uid": str(uuid.uuid4()), "creationTimestamp": now()}
        status = {
            "conditions": [ready],
            "capacity": room,
            "allocatable": room,
            "nodeInfo": {"kubeletVersion": "v1.32.4"},
        }
        made = {"kind": "Node", "apiVersion": "v1", "metadata": before["metadata"] if before else about}
        self.store.put(_NODES, {**made, "spec": {}, "status": status})

    def run(self, pod: Obj) -> PodRun | None:
        """What looks after a pod."""
        return self._runs.get(pod["metadata"]["uid"])

    def start(self, pod: Obj) -> None:
        """Look after a pod that was created."""
        self._runs[pod["metadata"]["uid"]] = PodRun(self, pod)

    def gone(self, run: PodRun) -> None:
        """Nothing is left of a pod but its object."""
        self._runs.pop(run.uid, None)
        self._placed.discard(run.uid)
        if (pod := run.pod) is not None and not pod["metadata"].get("finalizers"):
            self.store.remove(_PODS, pod)
        self.changed()

    def changed(self) -> None:
        """There may be room again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def place(self, run: PodRun) -> None:
        """Wait until there is room for the pod, and bind it."""
        told = ""
        while (pod := run.pod) is not None and (why := self._why_not(pod)):
            if why != told:
                told = why
                at = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
                status = {**pod["status"], "conditions": [{**at, "lastTransitionTime": now(), "lastProbeTime": None}]}
                self.store.put(_PODS, {**pod, "status": status})
                self.event(pod, "FailedScheduling", why, "Warning")
            await self._changed.wait()
        if pod is not None:
            self._placed.add(run.uid)
            bound = self.store.put(_PODS, {**pod, "spec": {**pod["spec"], "nodeName": NODE}})
            said = f"Successfully assigned {bound['metadata']['namespace']}/{bound['metadata']['name']} to {NODE}"
            self.event(bound, "Scheduled", said)

    def _why_not(self, pod: Obj) -> str:
        """Why the pod finds no place; "" if it does."""
        none = "0/1 nodes are available: "
        if self.unschedulable:
            return self.unschedulable
        if self.lost:
            return f"{none}1 node(s) had untolerated taint {{node.kubernetes.io/unreachable: }}."
        labels = (self.store.get(_NODES, "", NODE) or {})["metadata"]["labels"]
        if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
            return f"{none}1 node(s) didn't match Pod's node affinity/selector."
        found = (one.pod for one in self._runs.values() if one.uid in self._placed)
        running = [one for one in found if one is not None and one["status"]["phase"] not in ("Succeeded", "Failed")]
        if len(running) >= self.most:
            return f"{none}1 Too many pods."
        for resource, room in self.room.items():
            wanted = requested(pod, "requests", resource) or 0
            if wanted and sum(requested(one, "requests", resource) or 0 for one in running) + wanted > room:
                return f"{none}1 Insufficient {resource}."
        return ""

    async def pull(self, image: str) -> None:
        """See that an image is there.

        Raises:
            PullError: if it is not, or is said not to be.
        """
        if image in self.missing:
            raise PullError(self.missing[image])
        await self.backing.pull(image)

    async def pause_image(self) -> str:
        """The image of the container that holds a pod's network; "" if there is none."""
        try:
            await self.backing.pull(self.pause)
        except PullError:
            return ""
        return self.pause

    def lose(self) -> None:
        """The control plane hears nothing of the node any more; connections through it are reset."""
        self.lost = True
        self.show()
        for uid in list(self.streams):
            self.cut(uid)
        for pod in self.store.all(_PODS):
            if pod["metadata"]["uid"] in self._placed:
                conditions = [
                    {**one, "status": "False"} if one["type"] == "Ready" else one
                    for one in pod["status"].get("conditions") or []
                ]
                self.store.put(_PODS, {**pod, "status": {**pod["status"], "conditions": conditions}})
        self.deletes.clear()

    def find(self) -> None:
        """The node is there again."""
        self.lost = False
        self.show()
        self.deletes.set()
        for run in self._runs.values():
            run.show()
        self.changed()

    def cut(self, uid: str) -> None:
        """Reset the connections of a pod's commands and logs."""
        for connection in self.streams.pop(uid, set()):
            connection.reset()

    def event(self, pod: Obj, reason: str, message: str, kind: str = "Normal") -> None:
        """Write down what happened to a pod."""
        about = pod["metadata"]
        involved: dict[str, Any] = {"kind": "Pod", "apiVersion": "v1"}
        involved |= {key: about[key] for key in ("name", "namespace", "uid", "resourceVersion")}
        name = f"{about['name']}.{uuid.uuid4().hex[:16]}"
        metadata = {"name": name, "namespace": about["namespace"], "uid": str(uuid.uuid4()), "creationTimestamp": now()}
        times = {"firstTimestamp": now(), "lastTimestamp": now(), "count": 1}
        said = {"type": kind, "reason": reason, "message": message, "source": {"component": "fake", "host": NODE}}
        event = {"kind": "Event", "apiVersion": "v1", "metadata": metadata, "involvedObject": involved}
        if self.store.get(KINDS["", "namespaces"], "", about["namespace"]) is not None:
            self.store.put(_EVENTS, {**event, **times, **said})

    def watch_over(self, task: asyncio.Task[None]) -> None:
        """Remember a fault of the fake itself."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self.errors.append(error)

    async def close(self) -> None:
        """Stop looking after pods."""
        await asyncio.gather(*(run.close() for run in self._runs.values()))
