"""Makes a pod and sees to it that it runs, or says why it does not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from proctor.contracts import PrerequisiteError, SandboxBrokenError, UsageError
from proctor.monitor import doing
from proctor_sandbox_k8s._cluster import Refused, Unreachable
from proctor_sandbox_k8s._command import Target, run
from proctor_sandbox_k8s._diagnosis import broken, events_of
from proctor_sandbox_k8s._pods import Pods, Watched
from proctor_sandbox_k8s._script import Command
from proctor_sandbox_k8s._spec import PodSpec
from proctor_sandbox_k8s._state import hopeless, is_ready, waits_for
from proctor_sandbox_k8s._threads import Threads
from proctor_sandbox_k8s._wake import Stop, Stopped

__all__ = ["PodMaker"]

_log = logging.getLogger("proctor.sandbox.k8s")
_ROOM = 5.0  # seconds between two looks whether there is room in the namespace
_SHOWN = 5.0  # seconds of waiting that need no explanation

# What commands, files and time-outs need of an image, and where a sample starts.
_GREETING = """\
for c in cat dd grep head id mkdir sleep wc; do command -v $c >/dev/null || echo "lacks $c"; done
d=$(pwd)
if [ "$d" = / ]; then
for d in /workspace /tmp/workspace /; do mkdir -p "$d" 2>/dev/null && [ -w "$d" ] && break; done
fi
echo "at $d"
"""


class PodMaker:
    """Makes the pods of one driver.

    Args:
        threads: of the driver.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._told: set[str] = set()

    async def make(self, pods: Pods, watched: Watched, spec: PodSpec, manifest: Mapping[str, Any]) -> dict[str, str]:
        """Make a pod, and wait until it runs; the working directory of each of its containers.

        Raises:
            UsageError: the cluster refuses a pod like this.
            SandboxBrokenError: it does not come to run.
        """
        await self._create(pods, watched, spec, manifest)
        await self._started(pods, watched, spec)
        directories: dict[str, str] = {}
        for container in spec.containers:
            target = Target(pods, watched, container.name)
            directories[container.name] = await self._greet(target, container.image)
        return directories

    async def _create(self, pods: Pods, watched: Watched, spec: PodSpec, manifest: Mapping[str, Any]) -> None:
        end = anyio.current_time() + spec.start_timeout if spec.start_timeout else float("inf")
        while True:
            try:
                pod = await self._threads.make(lambda stop: _post(pods, manifest, stop))
                watched.uid = pod["metadata"]["uid"]
                pods.note(pod)
                return
            except Refused as error:
                if not error.over_quota:
                    raise _no_pod(error, pods) from None
                # Without the name of the pod, so that it is said once for all of them.
                said = f"no room in namespace {pods.namespace}: {str(error).partition('forbidden: ')[2] or error}"
            except Unreachable as error:
                raise SandboxBrokenError(f"no pod could be made: {error}") from None
            # Who holds the room may be this run itself: then it is a matter of time, of whatever time.
            alone = not any(each is not watched and each.uid for each in pods.all())
            if alone and anyio.current_time() > end:
                raise SandboxBrokenError(
                    f"no pod could be made for {spec.start_timeout:g} s (startTimeout): {said}. Ask for less, or end "
                    "what else runs there"
                )
            self._tell(said)
            with doing("sandbox", f"start k8s: {said}"):
                await anyio.sleep(_ROOM)

    async def _started(self, pods: Pods, watched: Watched, spec: PodSpec) -> None:
        began = anyio.current_time()
        end = began + spec.start_timeout if spec.start_timeout else None

        async def look() -> None:
            await self._threads.call(lambda: pods.look(watched))

        shown = ""
        while not _over(watched):
            shown = waits_for(watched.pod or {})
            if anyio.current_time() - began > _SHOWN:
                self._tell(shown)
            with doing("sandbox", f"start k8s: {shown}"):
                left = None if end is None else end - anyio.current_time()
                soon = _SHOWN if left is None else min(left, max(_SHOWN, 0.0))
                await pods.until(watched, _changed(watched, shown), soon, look)
            if end is not None and anyio.current_time() >= end and not _over(watched):
                said = await self._threads.call(lambda: events_of(pods, watched))
                name = f"{pods.namespace}/{watched.name}"
                text = f"pod {name} did not run after {spec.start_timeout:g} s (startTimeout): {shown}"
                raise SandboxBrokenError(text, f"events: {said}" if said else "")
        pod = watched.pod
        if pod is not None and watched.problem() is None and hopeless(pod):
            raise UsageError(f"sandbox 'k8s': the pod can never run: {waits_for(pod)}")
        if watched.problem() is not None:
            raise await self._threads.call(lambda: broken(pods, watched, "it did not come to run"))

    def _tell(self, reason: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            _log.warning("a sandbox waits in Kubernetes: %s", reason)

    async def _greet(self, target: Target, image: str) -> str:
        command = Command(["sh", "-c", _GREETING], cwd=".")
        done = await self._threads.stream(lambda stop: run(target, command, stop, timeout=60.0))
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        lacks = [line.removeprefix("lacks ") for line in lines if line.startswith("lacks ")]
        if lacks or not lines:
            raise PrerequisiteError(
                f"sandbox 'k8s': the image {image} has no {', '.join(lacks) or 'working shell'}: commands and files "
                "need these; take an image with the usual small commands, such as debian or alpine"
            )
        return lines[-1].removeprefix("at ")


def _post(pods: Pods, manifest: Mapping[str, Any], stop: Stop) -> Any:
    """Make the pod; its name is its own, so one that is there already came of an answer that was lost."""
    path = f"{pods.path}/{manifest['metadata']['name']}"
    try:
        pod = pods.cluster.request("POST", pods.path, {"fieldValidation": "Strict"}, manifest)
    except Refused as error:
        if error.status != 409 or error.reason != "AlreadyExists":
            raise
        pod = pods.cluster.request("GET", path)
    if stop.asked:
        pods.cluster.request("DELETE", path, body={"gracePeriodSeconds": 0})
        raise Stopped
    return pod


def _no_pod(error: Refused, pods: Pods) -> Exception:
    if error.transient:
        return SandboxBrokenError(f"no pod could be made: {error}")
    hint = ""
    if error.status == 403:
        hint = "; the user's role needs create, get, list, watch and delete of pods, and create and get of pods/exec"
    return UsageError(f"sandbox 'k8s': the cluster refuses the pod in namespace {pods.namespace}: {error}{hint}")


def _over(watched: Watched) -> bool:
    """Whether nothing is to be waited for any more, for good or ill."""
    if watched.problem() is not None:
        return True
    return watched.pod is not None and (is_ready(watched.pod) or hopeless(watched.pod))


def _changed(watched: Watched, shown: str) -> Callable[[], bool]:
    return lambda: _over(watched) or waits_for(watched.pod or {}) != shown
