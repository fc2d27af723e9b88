"""Takes pods away, and makes sure that they are gone."""

from __future__ import annotations

import contextlib
import logging
from functools import partial
from typing import Any

import anyio

from proctor_sandbox_k8s._cluster import Cluster, Refused, Unreachable
from proctor_sandbox_k8s._pods import Pods, Watched
from proctor_sandbox_k8s._threads import Threads

__all__ = ["delete", "delete_path", "remove_pod"]

_log = logging.getLogger("proctor.sandbox.k8s")
_POLITE = 10.0  # seconds that a pod has to end by itself
_FORCED = 35.0  # seconds after which one that was ended by force is reported
_AGAIN = 5.0


def delete(cluster: Cluster, path: str, uid: str | None, grace: int | None, patience: float = 20.0) -> bool:
    """Delete an object; whether it was there. In a worker thread.

    Args:
        uid: of the one that is meant: another one of the same name stays.
        grace: seconds; ``None`` = its own.

    Raises:
        Refused, Unreachable: it can't be deleted.
    """
    body: dict[str, Any] = {"propagationPolicy": "Background"}
    if uid is not None:
        body["preconditions"] = {"uid": uid}
    if grace is not None:
        body["gracePeriodSeconds"] = grace
    try:
        cluster.request("DELETE", path, body=body, patience=patience)
    except Refused as error:
        if error.status in (404, 409):  # gone, or another one by now
            return False
        raise
    return True


async def remove_pod(threads: Threads, pods: Pods, watched: Watched, *, quick: bool) -> bool:
    """Delete a pod, politely unless it is to be quick, then by force; whether it is gone.

    One that is not gone in time is reported, and still looked after.
    """
    path = f"{pods.path}/{watched.name}"

    async def look() -> None:
        await threads.call(lambda: pods.look(watched))

    def gone() -> bool:
        return watched.gone

    end = anyio.current_time() + _FORCED
    grace, wait, trouble = (0, _AGAIN, "") if quick else (1, _POLITE, "")
    while not gone():
        ask = partial(delete, pods.cluster, path, watched.uid, grace, patience=10.0)
        try:
            there = await threads.call(ask)
        except (Refused, Unreachable) as error:
            there, trouble = True, str(error)
        if not there:
            pods.lost(watched)
            break
        if not await pods.until(watched, gone, wait, look):
            with contextlib.suppress(Refused, Unreachable):  # the watch may have missed it
                await look()
        grace, wait = 0, _AGAIN
        if not gone() and anyio.current_time() > end:
            _log.warning(
                "pod %s/%s is not gone after %g s%s; remove it with: %s",
                pods.namespace,
                watched.name,
                _FORCED,
                f" ({trouble})" if trouble else "",
                delete_command(pods, watched),
            )
            return False
    pods.drop(watched)
    return True


def delete_command(pods: Pods, watched: Watched) -> str:
    """How a person removes it."""
    context = f"--context {pods.cluster.context} " if pods.cluster.context else ""
    return f"kubectl {context}-n {pods.namespace} delete pod {watched.name} --grace-period=0 --force"


async def delete_path(threads: Threads, cluster: Cluster, path: str, uid: str | None = None) -> bool:
    """Delete any object and wait until it is gone; whether it is.

    Raises:
        Refused, Unreachable: the cluster does not let it be deleted, or does not say.
    """
    grace: int | None = 1
    for _ in range(6):
        await threads.call(partial(delete, cluster, path, uid, grace))
        for _ in range(20):
            if await threads.call(lambda: _gone(cluster, path, uid)):
                return True
            await anyio.sleep(0.25)
        grace = 0
    return False


def _gone(cluster: Cluster, path: str, uid: str | None) -> bool:
    try:
        found = cluster.request("GET", path)
    except Refused as error:
        if error.status == 404:
            return True
        raise
    return uid is not None and found["metadata"].get("uid") != uid
