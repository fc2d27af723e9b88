"""The pods of one driver in one namespace, as a watch tells of them."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import anyio

from proctor_sandbox_k8s._cluster import Cluster, Refused, Unreachable
from proctor_sandbox_k8s._owner import selector
from proctor_sandbox_k8s._state import problem
from proctor_sandbox_k8s._wake import waker

__all__ = ["Pods", "Watched"]

_log = logging.getLogger("proctor.sandbox.k8s")
_TURN = 240  # seconds after which the server ends a watch, and it is begun again
_SILENCE = 300.0
_LONGEST_PAUSE = 10.0
_LOOK = 20.0  # seconds without news of a pod that is waited for, after which it is asked for


class Watched:
    """One pod: the newest that is known of it. Written by the watch, read by everyone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.uid: str | None = None
        self.pod: Mapping[str, Any] | None = None
        self.gone = False
        self.heard = time.monotonic()
        """When something was heard of it for the last time, or asked."""
        self.wakers: set[Callable[[], None]] = set()

    def problem(self) -> str | None:
        """Why it can't be used any more."""
        replaced = self.pod is not None and self.uid not in (None, self.pod["metadata"].get("uid"))
        if self.gone and not replaced:
            return "it is gone: it was deleted"
        return None if self.pod is None else problem(self.pod, self.uid)


class Pods:
    """Watches, in a thread of its own, the pods with the label of one driver; while there are any.

    Args:
        cluster: where they are.
        namespace: the one in which they are.
        driver: the label's value.
    """

    def __init__(self, cluster: Cluster, namespace: str, driver: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self._driver = driver
        self._known: dict[str, Watched] = {}
        self._lock = threading.Lock()
        self._watch: _Watch | None = None

    def add(self, name: str) -> Watched:
        """Look after a pod that is about to be made."""
        with self._lock:
            watched = self._known[name] = Watched(name)
            if self._watch is None:
                self._watch = _Watch(self, selector(self._driver))
                self._watch.start()
            return watched

    def drop(self, watched: Watched) -> None:
        """Look after it no longer; with the last one the watch ends."""
        with self._lock:
            self._known.pop(watched.name, None)
            ending = None if self._known else self._watch
            self._watch = self._watch if self._known else None
        if ending is not None:
            ending.end()

    def all(self) -> list[Watched]:
        """Those that are looked after."""
        with self._lock:
            return list(self._known.values())

    def note(self, pod: Mapping[str, Any], *, gone: bool = False) -> None:
        """Take in what is known of a pod now."""
        with self._lock:
            watched = self._known.get(pod["metadata"]["name"])
        if watched is None or (gone and watched.uid not in (None, pod["metadata"].get("uid"))):
            return
        with self._lock:  # an answer to a request may come later than what the watch has told since
            watched.heard = time.monotonic()
            if watched.pod is None or not _older(pod, watched.pod):
                watched.pod = pod
            watched.gone = watched.gone or gone
        for wake in list(watched.wakers):
            wake()

    def look(self, watched: Watched) -> None:
        """Ask the server for it; in a worker thread.

        Raises:
            Refused, Unreachable: the server did not say.
        """
        watched.heard = time.monotonic()
        made = watched.uid is not None
        try:
            self.note(self.cluster.request("GET", f"{self.path}/{watched.name}", patience=5.0))
        except Refused as error:
            if error.status != 404:
                raise
            if made:
                self.lost(watched)

    def lost(self, watched: Watched) -> None:
        """It is not there."""
        watched.gone = True
        for wake in list(watched.wakers):
            wake()

    async def until(
        self, watched: Watched, done: Callable[[], bool], seconds: float | None, look: Callable[[], Any]
    ) -> bool:
        """Wait until ``done``, by what the watch tells; whether it is.

        Args:
            watched: the pod.
            done: looked at after every change.
            seconds: ``None`` = for ever.
            look: asks the server, since a watch may have missed something; awaited now and then.
        """
        end = None if seconds is None else anyio.current_time() + seconds
        while not done():
            event, wake = waker()
            watched.wakers.add(wake)
            try:
                if done():
                    return True
                left = float("inf") if end is None else end - anyio.current_time()
                if left <= 0:
                    return False
                silent = watched.heard + _LOOK - time.monotonic()
                with anyio.move_on_after(min(left, max(silent, 0.0))):
                    await event.wait()
            finally:
                watched.wakers.discard(wake)
            if time.monotonic() - watched.heard >= _LOOK:
                with contextlib.suppress(Refused, Unreachable):
                    await look()
        return True


def _older(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether one state of a pod was before another; versions are numbers that grow."""
    first, second = (str(each["metadata"].get("resourceVersion", "")) for each in (one, other))
    return first.isdecimal() and second.isdecimal() and int(first) < int(second)


class _Watch:
    """The thread: lists, then watches from there; begins anew where the server has forgotten what came before."""

    def __init__(self, pods: Pods, labels: str) -> None:
        self._pods = pods
        self._labels = labels
        self._over = threading.Event()
        self._response: Any = None
        self._told = False
        self._thread = threading.Thread(target=self._run, name="proctor-k8s-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """End it without waiting: the thread stands in a read, which the end of its connection ends."""
        self._over.set()
        response = self._response
        sock = getattr(getattr(response, "connection", None), "sock", None)
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        version, pause = "", 0.2
        while not self._over.is_set():
            began = time.monotonic()
            try:
                version = version or self._list()
                for kind, told in self._events(version):
                    version = self._take(kind, told)
                    pause = 0.2
                    if not version or self._over.is_set():
                        break
            except Refused as error:
                version = "" if error.status == 410 else version
                self._warn(error)
            except Exception as error:  # the thread must not die of anything that a connection may do
                self._warn(error)
            if time.monotonic() - began < 5.0 and version:
                self._over.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _warn(self, error: Exception) -> None:
        expected = self._over.is_set() or (isinstance(error, Refused) and error.status == 410)
        if not (expected or self._told or isinstance(error, Unreachable)):
            self._told = True
            _log.warning("watching the pods in %s: %s; pods are asked for one by one", self._pods.namespace, error)
        _log.debug("the watch begins again: %s", error)

    def _list(self) -> str:
        # Made before it is asked: one that is made meanwhile may not be in the list.
        before = [watched for watched in self._pods.all() if watched.uid is not None]
        listed = self._pods.cluster.request("GET", self._pods.path, {"labelSelector": self._labels})
        items = listed.get("items") or []
        for pod in items:
            self._pods.note(pod)
        there = {pod["metadata"]["name"] for pod in items}
        for watched in before:
            if watched.name not in there:
                self._pods.lost(watched)
        return str(listed["metadata"]["resourceVersion"])

    def _events(self, version: str) -> Iterator[tuple[str, Any]]:
        query = {
            "labelSelector": self._labels,
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_TURN),
        }
        response = self._response = self._pods.cluster.lines(self._pods.path, query, _SILENCE)
        try:
            rest = b""
            if self._over.is_set():  # it was ended while there was no connection to end
                return
            for chunk in response.stream(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        event = json.loads(line)
                        yield event["type"], event["object"]
        finally:
            self._response = None
            response.close()  # what is left of it is not waited for

    def _take(self, kind: str, told: Any) -> str:
        """Note an event; the version to go on from, or nothing if that is no longer kept."""
        if kind == "ERROR":
            raise Refused(int(told.get("code") or 500), str(told.get("reason")), str(told.get("message")))
        if kind != "BOOKMARK":
            self._pods.note(told, gone=kind == "DELETED")
        return str(told["metadata"]["resourceVersion"])
