"""Pods of real containers of a Docker engine."""

from __future__ import annotations

import asyncio
import contextlib
import io
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

from proctor_testkit.kube._backing import (
    Backing,
    CommandError,
    Container,
    Ended,
    Execution,
    Launch,
    PullError,
    StartError,
)
from proctor_testkit.kube._engine import Engine, EngineError, Stream
from proctor_testkit.kube._place import Place, is_left

__all__ = ["DockerBacking"]

_OWNER = "proctor.fake-kubernetes"
_POD = "proctor.fake-kubernetes.pod"
_HEARS = 20  # times that an engine is asked whether it was the kernel that killed
_CANNOT_START = (126, 127)  # the exit codes by which an engine says that it could not start a command


class DockerBacking(Backing):
    """Each container is one of the engine's; all containers of a pod share the network of its first."""

    def __init__(self, place: Place, host: str | None = None) -> None:
        self.engine = Engine(host)
        self._owner = place.name

    async def open(self) -> None:
        await self.engine.call("GET", "/version")
        await self._sweep(is_left)

    async def close(self) -> None:
        await self._sweep(lambda name: name == self._owner)

    async def pull(self, image: str) -> None:
        try:
            await self.engine.call("GET", f"/images/{image}/json")
        except EngineError as error:
            raise PullError(f'failed to pull and unpack image "{image}": {error}') from None

    async def create(self, launch: Launch) -> Container:
        try:
            made = await self.engine.call("POST", "/containers/create", self._body(launch))
            if launch.files:
                archive = await asyncio.to_thread(_archive, launch)
                await self.engine.call("PUT", f"/containers/{made['Id']}/archive?path=/", archive)
        except EngineError as error:
            raise StartError(str(error)) from None
        return _DockerContainer(self.engine, made["Id"])

    def _body(self, launch: Launch) -> dict[str, Any]:
        labels = {_OWNER: self._owner, _POD: launch.pod}
        rights = launch.security.get("capabilities") or {}
        host: dict[str, Any] = {
            "Memory": launch.memory,
            "NanoCpus": int(launch.cpus * 1e9),
            "Privileged": bool(launch.security.get("privileged")),
            "ReadonlyRootfs": bool(launch.security.get("readOnlyRootFilesystem")),
            "CapAdd": rights.get("add") or [],
            "CapDrop": rights.get("drop") or [],
            "Mounts": [
                {
                    "Type": "volume",
                    "Source": f"fake-kubernetes-{launch.pod}-{name}",
                    "Target": path,
                    "VolumeOptions": {"Labels": labels},
                }
                for path, name in launch.shared.items()
            ],
        }
        if launch.security.get("allowPrivilegeEscalation") is False:
            host["SecurityOpt"] = ["no-new-privileges"]
        if isinstance(launch.joined, _DockerContainer):
            host["NetworkMode"] = f"container:{launch.joined.id}"
        else:
            host["ExtraHosts"] = [f"{name}:{address}" for name, address in launch.hosts.items()]
            if not launch.network:
                host["NetworkMode"] = "none"
        body: dict[str, Any] = {
            "Image": launch.image,
            "Env": [f"{name}={value}" for name, value in launch.environment.items()],
            "WorkingDir": launch.directory,
            "User": launch.user,
            "Labels": labels,
            "HostConfig": host,
        }
        if launch.command is not None:
            body["Entrypoint"] = list(launch.command)
        if launch.arguments is not None:
            body["Cmd"] = list(launch.arguments)
        if launch.joined is None:
            body["Hostname"] = launch.hostname
        return body

    async def _sweep(self, wanted: Callable[[str], bool]) -> None:
        """Remove the containers and volumes of the owners that are ``wanted``."""
        by_label = f'{{"label": ["{_OWNER}"]}}'
        found = await self.engine.call("GET", "/containers/json", all="true", filters=by_label)
        ours = [one["Id"] for one in found if wanted(one["Labels"][_OWNER])]
        await asyncio.gather(*(_remove(self.engine, name) for name in ours))
        volumes = (await self.engine.call("GET", "/volumes", filters=by_label)).get("Volumes") or []
        for volume in volumes:
            if wanted(volume["Labels"][_OWNER]):
                with contextlib.suppress(EngineError):
                    await self.engine.call("DELETE", f"/volumes/{volume['Name']}", force="true")


class _DockerContainer(Container):
    def __init__(self, engine: Engine, name: str) -> None:
        self.id = name
        self._engine = engine

    async def start(self) -> None:
        try:
            await self._engine.call("POST", f"/containers/{self.id}/start")
            about = await self._engine.call("GET", f"/containers/{self.id}/json")
        except EngineError as error:
            raise StartError(str(error)) from None
        self.address = about["NetworkSettings"]["IPAddress"]

    async def wait(self) -> Ended:
        try:
            await self._engine.call("POST", f"/containers/{self.id}/wait")
            state = await self._ended()
        except EngineError:
            return Ended(137, "Error")
        code = state["ExitCode"]
        return Ended(code, "OOMKilled" if state["OOMKilled"] else "Error" if code else "Completed")

    async def _ended(self) -> dict[str, Any]:
        """Its state. An engine may hear of the kernel's killing only after it has seen the end."""
        for _ in range(_HEARS):
            found = await self._engine.call("GET", f"/containers/{self.id}/json")
            state: dict[str, Any] = found["State"]
            if state["OOMKilled"] or state["ExitCode"] != 137 or not found["HostConfig"].get("Memory"):
                break
            await asyncio.sleep(0.1)
        return state

    async def stop(self, grace: float) -> None:
        with contextlib.suppress(EngineError):  # it is gone
            await self._engine.call("POST", f"/containers/{self.id}/stop", t=int(grace))

    async def remove(self) -> None:
        await _remove(self._engine, self.id)

    async def logs(
        self, *, follow: bool, tail: int | None, since: float, timestamps: bool
    ) -> AsyncGenerator[bytes, None]:
        asked: dict[str, Any] = {
            "stdout": "true",
            "stderr": "true",
            "follow": str(follow).lower(),
            "timestamps": str(timestamps),
        }
        stream = await self._engine.open(
            "GET", f"/containers/{self.id}/logs", since=since, tail="all" if tail is None else tail, **asked
        )
        try:
            async for _, data in stream.frames():
                yield data
        finally:
            stream.close()

    async def exec(self, command: Sequence[str], *, stdin: bool, tty: bool) -> Execution:
        asked = {"AttachStdin": stdin, "AttachStdout": True, "AttachStderr": not tty, "Tty": tty, "Cmd": list(command)}
        try:
            made = await self._engine.call("POST", f"/containers/{self.id}/exec", asked)
            options = {"Detach": False, "Tty": tty}
            stream = await self._engine.open("POST", f"/exec/{made['Id']}/start", options, upgrade=True)
        except EngineError as error:
            raise CommandError(str(error)) from None
        return _DockerExecution(self._engine, made["Id"], stream, tty)


class _DockerExecution(Execution):
    def __init__(self, engine: Engine, name: str, stream: Stream, tty: bool) -> None:
        self._engine = engine
        self._id = name
        self._stream = stream
        self._tty = tty

    async def write(self, data: bytes) -> None:
        await self._stream.write(data)

    async def end_input(self) -> None:
        self._stream.end_input()

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        first = True
        async for channel, data in self._stream.frames(raw=self._tty):
            # The engine says in the command's own output that it could not start it.
            if first and data.startswith(b"OCI runtime exec failed") and await self.wait() in _CANNOT_START:
                raise CommandError(data.decode("utf-8", "replace").strip())
            first = False
            yield channel, data

    async def wait(self) -> int:
        while True:
            about = await self._engine.call("GET", f"/exec/{self._id}/json")
            if not about["Running"] and about["ExitCode"] is not None:
                return int(about["ExitCode"])
            await asyncio.sleep(0.01)  # its output may end before it

    async def resize(self, columns: int, rows: int) -> None:
        with contextlib.suppress(EngineError):
            await self._engine.call("POST", f"/exec/{self._id}/resize", h=rows, w=columns)

    def leave(self) -> None:
        self._stream.close()


async def _remove(engine: Engine, name: str) -> None:
    for _ in range(3):
        try:
            await engine.call("DELETE", f"/containers/{name}", force="true", v="true")
            return
        except EngineError as error:
            if error.status == 404:
                return
            await asyncio.sleep(0.2)  # "removal is already in progress", or the engine is busy


def _archive(launch: Launch) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for path, data in launch.files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()
