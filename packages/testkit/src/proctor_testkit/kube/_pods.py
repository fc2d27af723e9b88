"""The life of one pod: scheduled, its images there, its containers made, started again, ended and taken away."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from proctor_testkit.kube._backing import CommandError, Container, Ended, Launch, PullError, StartError
from proctor_testkit.kube._launch import ConfigError, is_cut_off, launch
from proctor_testkit.kube._status import ContainerState, pod_status
from proctor_testkit.kube._store import Obj, key_of
from proctor_testkit.kube._types import KINDS

if TYPE_CHECKING:
    from proctor_testkit.kube._node import Node

__all__ = ["PodRun"]

_PODS = KINDS["", "pods"]
_KILLED = Ended(137, "Error")


class PodRun:
    """A pod that was created, until nothing of it is left."""

    def __init__(self, node: Node, pod: Obj) -> None:
        self._node = node
        self._namespace, self._name = key_of(pod)
        self.uid = pod["metadata"]["uid"]
        self.spec: Obj = pod["spec"]
        spec = pod["spec"]
        self.states = [
            *(ContainerState(one, init=True) for one in spec.get("initContainers") or []),
            *(ContainerState(one) for one in spec["containers"]),
        ]
        self.scheduled = False
        self._holder: Container | None = None
        self._address = ""
        self._network = True
        self._made: list[Container] = []
        self._task = asyncio.get_running_loop().create_task(self._live())
        self._task.add_done_callback(node.watch_over)
        self._ending: asyncio.Task[None] | None = None

    @property
    def pod(self) -> Obj | None:
        """Its object, while it is there."""
        found = self._node.store.get(_PODS, self._namespace, self._name)
        return found if found is not None and found["metadata"]["uid"] == self.uid else None

    def container(self, name: str) -> ContainerState | None:
        """One of its containers."""
        return next((one for one in self.states if one.name == name), None)

    def begin_end(self, grace: float, *, forced: bool) -> None:
        """End its containers, and take it away; ``forced``: its object is gone already."""
        self._task.cancel()
        if self._ending is not None and forced:
            self._ending.cancel()
            self._ending = None
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end(grace, forced=forced))
            self._ending.add_done_callback(self._node.watch_over)

    async def fail(self, reason: str, message: str) -> None:
        """End all its containers at once and leave its object: evicted, for instance."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.gather(*(one.stop(0) for one in self._made))
        for state in self.states:
            if state.running is not None and "terminated" not in state.state:
                state.end(_KILLED)
            state.final = True
        self.show(phase="Failed", reason=reason, message=message)

    async def close(self) -> None:
        """Stop looking after it; its backing takes away what it made."""
        tasks = [self._task, *([self._ending] if self._ending else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def show(self, **more: str) -> None:
        """Write its status."""
        if (pod := self.pod) is None:
            return
        status = {**pod_status(pod["status"], self.states, self._address, scheduled=self.scheduled), **more}
        if status != pod["status"]:
            self._node.store.put(_PODS, {**pod, "status": status})

    async def _live(self) -> None:
        limit = self.spec.get("activeDeadlineSeconds")
        try:
            async with asyncio.timeout(limit):
                await self._node.place(self)
                self.scheduled = True
                for state in self.states:
                    state.wait_for("PodInitializing" if any(one.init for one in self.states) else "ContainerCreating")
                self.show()
                await self._node.starts.wait()
                if not await self._initialize():
                    return
                async with asyncio.TaskGroup() as group:
                    for state in self.states:
                        if not state.init:
                            group.create_task(self._keep(state))
        except TimeoutError:
            asyncio.get_running_loop().create_task(
                self.fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
            )
        finally:
            self._node.changed()

    async def _initialize(self) -> bool:
        """The network that all share, and the containers that run before the others; False if one failed for good."""
        pod = self.pod
        self._network = pod is None or not is_cut_off(self._node.store, pod)
        if len(self.states) > 1 and pod is not None and (image := await self._node.pause_image()):
            holding = {"name": "POD", "image": image, "command": ["sleep", "2147483647"]}
            try:
                asked = launch(self._node.store, pod, holding, "", None, network=self._network)
                self._holder = await self._make(asked)
                await self._holder.start()
                self._address = self._holder.address
            except StartError as error:
                self._node.event(pod, "FailedCreatePodSandBox", str(error), "Warning")
        for state in [one for one in self.states if one.init]:
            await self._keep(state)
            if state.code:
                self.show()
                return False
        return True

    async def _keep(self, state: ContainerState) -> None:
        """Start a container, and again when it ends, as the pod's policy is."""
        while True:
            container = await self._start(state)
            ended = await container.wait() if container is not None else Ended(128, "StartError")
            if container is not None:
                state.end(ended)
            policy = (
                "OnFailure" if state.init and self.spec["restartPolicy"] == "Always" else self.spec["restartPolicy"]
            )
            state.final = policy == "Never" or (policy == "OnFailure" and not ended.code)
            self.show()
            if state.final:
                return
            await asyncio.sleep(self._node.restart_delay)
            if state.restarts and (pod := self.pod):
                state.last, message = state.state, f"back-off restarting failed container {state.name}"
                state.wait_for("CrashLoopBackOff", message)
                self.show()
                self._node.event(pod, "BackOff", message, "Warning")
                await asyncio.sleep(self._node.restart_delay * min(2**state.restarts, 16))
            state.last = state.state if "terminated" in state.state else state.last
            state.restarts += 1
            await self._forget(state.previous)
            state.previous = state.running

    async def _start(self, state: ContainerState) -> Container | None:
        """A container that runs; None if it could not be started (which counts as an end)."""
        await self._pull(state)
        while True:
            pod = self.pod
            if pod is None:
                await asyncio.Event().wait()  # it was taken away by force, and this task is cancelled at once
                raise AssertionError
            try:
                asked = launch(self._node.store, pod, state.spec, self._address, self._holder, network=self._network)
                container = await self._make(asked)
                break
            except (ConfigError, StartError) as error:
                is_config = isinstance(error, ConfigError)
                reason = "CreateContainerConfigError" if is_config else "CreateContainerError"
                state.wait_for(reason, str(error))
                self.show()
                self._node.event(pod, "Failed", f"Error: {error}", "Warning")
                await asyncio.sleep(self._node.retry_delay)
        self._node.event(pod, "Created", f"Created container: {state.name}")
        try:
            await container.start()
        except StartError as error:
            state.running = container
            state.end(Ended(128, "StartError"), str(error))
            self._node.event(pod, "Failed", f"Error: {error}", "Warning")
            self.show()
            return None
        self._address = self._address or container.address
        probe = (state.spec.get("readinessProbe") or {}).get("exec")
        state.begin(container, ready=not probe)
        self.show()
        self._node.event(pod, "Started", f"Started container {state.name}")
        if probe:
            await self._probe(state, container, list(probe["command"]))
        return container

    async def _make(self, asked: Launch) -> Container:
        """A container, remembered also if this is cancelled while it is made."""
        making = asyncio.ensure_future(self._node.backing.create(asked))
        try:
            made = await asyncio.shield(making)
        except asyncio.CancelledError:
            with contextlib.suppress(StartError):
                self._made.append(await making)
            raise
        self._made.append(made)
        return made

    async def _pull(self, state: ContainerState) -> None:
        image, first = state.spec["image"], True
        while True:
            try:
                await self._node.pull(image)
            except PullError as error:
                if pod := self.pod:
                    state.wait_for("ErrImagePull", str(error))
                    self.show()
                    self._node.event(pod, "Failed", f'Failed to pull image "{image}": {error}', "Warning")
                    await asyncio.sleep(self._node.retry_delay)
                    state.wait_for("ImagePullBackOff", f'Back-off pulling image "{image}": {error}')
                    self.show()
                first = False
                await asyncio.sleep(self._node.retry_delay)
            else:
                break
        if pod := self.pod:
            said = f'Container image "{image}" already present on machine' if first else f'Pulled image "{image}"'
            self._node.event(pod, "Pulled", said)

    async def _probe(self, state: ContainerState, container: Container, command: list[str]) -> None:
        """Wait until a container says of itself that it is ready, or ends."""
        while not state.ready:
            try:
                execution = await container.exec(command, stdin=False, tty=False)
            except CommandError:
                return
            try:
                async for _ in execution.output():
                    pass
                state.ready = await execution.wait() == 0
            except CommandError:
                state.ready = False
            finally:
                execution.leave()
            if not state.ready:
                await asyncio.sleep(self._node.retry_delay)
        self.show()

    async def _forget(self, container: Container | None) -> None:
        if container is not None:
            self._made.remove(container)
            await container.remove()

    async def _end(self, grace: float, *, forced: bool) -> None:
        await asyncio.gather(self._task, return_exceptions=True)
        if not forced:
            await self._node.deletes.wait()
        if (pod := self.pod) and self.scheduled:
            self._node.event(pod, "Killing", "Stopping container " + ", ".join(one.name for one in self.states))
        await asyncio.gather(*(one.stop(grace) for one in self._made))
        for state in self.states:
            if "running" in state.state and state.running is not None:
                state.end(await state.running.wait())
            state.final = True
        self.show()
        await asyncio.gather(*(one.remove() for one in self._made))
        self._node.gone(self)
