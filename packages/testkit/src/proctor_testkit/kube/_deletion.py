"""How objects go: at once, after a grace period, when finalizers let them, with their owners, with their namespace."""

from __future__ import annotations

import asyncio
from typing import Any

from proctor_testkit.kube._errors import ApiError
from proctor_testkit.kube._node import Node
from proctor_testkit.kube._store import Obj, Store
from proctor_testkit.kube._types import KINDS, Kind
from proctor_testkit.kube._validation import now

__all__ = ["Deletion"]

_PODS, _NAMESPACES = KINDS["", "pods"], KINDS["", "namespaces"]
_LOOK = 0.02  # seconds between looks at whether a namespace is empty


class Deletion:
    """Takes objects away."""

    def __init__(self, store: Store, node: Node) -> None:
        self._store = store
        self._node = node
        self._tasks: set[asyncio.Task[None]] = set()
        self._orphans: set[str] = set()
        store.removed = self._collect

    def delete(self, kind: Kind, obj: Obj, options: Obj) -> Obj:
        """Begin to take an object away, by DeleteOptions; what a client is told.

        Raises:
            ApiError: if it is not the one that the options mean.
        """
        about = obj["metadata"]
        for key, value in (options.get("preconditions") or {}).items():
            if value is not None and about.get(key) != value:
                why = f"the {key} in the precondition ({value}) does not match the {key} in record ({about.get(key)})"
                raise ApiError(409, f'Operation cannot be fulfilled on {kind.qualified} "{about["name"]}": {why}')
        if options.get("propagationPolicy") == "Orphan" or options.get("orphanDependents"):
            self._orphans.add(about["uid"])
        if kind == _PODS:
            return self._delete_pod(obj, options.get("gracePeriodSeconds"))
        if kind == _NAMESPACES:
            marked = self._mark(kind, {**obj, "status": {"phase": "Terminating"}}, None)
            if not about.get("deletionTimestamp"):
                self._later(self._empty(about["name"]))
            return marked
        if about.get("finalizers"):
            return self._mark(kind, obj, None)
        self._store.remove(kind, obj)
        details = {"name": about["name"], "kind": kind.plural, "uid": about["uid"]}
        if kind.group:
            details["group"] = kind.group
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def finish(self, kind: Kind, obj: Obj) -> None:
        """The last finalizer of a deleted object is gone."""
        if kind != _PODS or self._node.run(obj) is None:
            self._store.remove(kind, obj)

    def _delete_pod(self, pod: Obj, asked: int | None) -> Obj:
        run = self._node.run(pod)
        forced = asked == 0 or run is None
        grace = pod["spec"]["terminationGracePeriodSeconds"] if asked is None else asked
        if run is None or not run.scheduled or pod["status"]["phase"] in ("Succeeded", "Failed"):
            grace = 0
        pod = self._mark(_PODS, pod, grace)
        if forced and not pod["metadata"].get("finalizers"):
            self._store.remove(_PODS, pod)
        if run is not None:
            run.begin_end(grace, forced=forced)
        return pod

    def _mark(self, kind: Kind, obj: Obj, grace: int | None) -> Obj:
        about = dict(obj["metadata"])
        about.setdefault("deletionTimestamp", now())
        if grace is not None:
            about["deletionGracePeriodSeconds"] = min(grace, about.get("deletionGracePeriodSeconds", grace))
        return self._store.put(kind, {**obj, "metadata": about})

    async def _empty(self, namespace: str) -> None:
        """Take away all that is in a namespace, then itself."""
        while True:
            left = [
                (kind, obj)
                for kind in self._store.kinds()
                if kind.namespaced
                for obj in self._store.all(kind, namespace)
            ]
            for kind, obj in left:
                if not obj["metadata"].get("deletionTimestamp"):
                    self.delete(kind, obj, {})
            if not left:
                break
            await asyncio.sleep(_LOOK)
        if (found := self._store.get(_NAMESPACES, "", namespace)) is not None:
            self._store.remove(_NAMESPACES, found)

    def _collect(self, owner: Obj) -> None:
        """Take away what the object owned, unless it was to be left."""
        uid = owner["metadata"]["uid"]
        if uid in self._orphans:
            self._orphans.discard(uid)
            return
        for kind, obj in self._store.owned(uid):
            if not obj["metadata"].get("deletionTimestamp"):
                self.delete(kind, obj, {})

    def _later(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Leave what is not yet done."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
