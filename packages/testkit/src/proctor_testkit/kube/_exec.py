"""Commands in pods over WebSocket, and the logs of pods."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any

from proctor_testkit.kube import _websocket as websocket
from proctor_testkit.kube._backing import CommandError, Container, Execution
from proctor_testkit.kube._errors import ApiError, bad_request
from proctor_testkit.kube._node import Node
from proctor_testkit.kube._store import Obj
from proctor_testkit.kube._websocket import WebSocket, accept
from proctor_testkit.kube._wire import Connection, KubeRequest

__all__ = ["run_command", "send_log"]

_SUCCESS: Obj = {"metadata": {}, "status": "Success"}


async def run_command(node: Node, pod: Obj, request: KubeRequest, connection: Connection) -> None:
    """``exec``: run the command of the request in the pod, and say on the error channel how it ended.

    Raises:
        ApiError: if there is no such container, or the request is no WebSocket handshake.
    """
    command = request.query.get("command", [])
    if not command:
        raise bad_request("you must specify at least 1 command for the container")
    container = _container(node, pod, request, "exec")
    wanted = {name: request.flag(name) for name in ("stdin", "stdout", "stderr", "tty")}
    if not (wanted["stdin"] or wanted["stdout"] or wanted["stderr"]):
        raise bad_request("you must specify at least one of stdin, stdout, stderr")
    socket = await accept(connection, request.headers)
    with _stream(node, pod, connection):
        # What tells a client that the connection stands: an empty message on the first channel that it reads.
        await socket.send(websocket.STDOUT if wanted["stdout"] else websocket.STDERR, b"")
        try:
            execution = await container.exec(command, stdin=wanted["stdin"], tty=wanted["tty"])
        except CommandError as error:
            status = _broken(error)
        else:
            status = await _converse(socket, execution, wanted)
        await socket.send(websocket.ERROR, json.dumps(status).encode())
        await socket.close()
        while await socket.receive() is not None:
            pass  # what a client still sends, until it has heard the end


async def _converse(socket: WebSocket, execution: Execution, wanted: dict[str, bool]) -> Obj:
    loop = asyncio.get_running_loop()
    listening = loop.create_task(_listen(socket, execution))
    speaking = loop.create_task(_speak(socket, execution, wanted))
    try:
        await asyncio.wait({listening, speaking}, return_when=asyncio.FIRST_COMPLETED)
        if not speaking.done():
            # The client is gone. The command runs on, and what it writes goes nowhere.
            raise ConnectionResetError("the client went away")
        try:
            speaking.result()
            return _ended(await execution.wait())
        except CommandError as error:
            return _broken(error)
    finally:
        listening.cancel()
        speaking.cancel()
        execution.leave()
        await asyncio.gather(listening, speaking, return_exceptions=True)


async def _listen(socket: WebSocket, execution: Execution) -> None:
    """Hand on what the client sends, to its end."""
    while (message := await socket.receive()) is not None:
        channel, data = (message[0], message[1:]) if message else (-1, b"")
        if channel == websocket.STDIN:
            await execution.write(data)
        elif channel == websocket.CLOSE and socket.protocol == websocket.PROTOCOLS[0]:
            if data == bytes([websocket.STDIN]):
                await execution.end_input()
        elif channel == websocket.RESIZE:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                size = json.loads(data)
                await execution.resize(size["Width"], size["Height"])
    await execution.end_input()


async def _speak(socket: WebSocket, execution: Execution, wanted: dict[str, bool]) -> None:
    async for channel, data in execution.output():
        if wanted["stdout" if channel == websocket.STDOUT else "stderr"]:
            await socket.send(channel, data)


def _ended(code: int) -> Obj:
    if not code:
        return _SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _broken(error: CommandError) -> Obj:
    said = f"error executing command in container: failed to exec in container: {error}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {said}",
        "reason": "InternalError",
        "details": {"causes": [{"message": said}]},
        "code": 500,
    }


def _container(node: Node, pod: Obj, request: KubeRequest, purpose: str) -> Container:
    """The container that a request names, or the only one, or the annotated or first one."""
    names = [one["name"] for side in ("initContainers", "containers") for one in pod["spec"].get(side) or []]
    main = [one["name"] for one in pod["spec"]["containers"]]
    name = request.one("container")
    if not name and len(names) > 1:
        annotated = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
        if annotated is None:
            listed = " ".join(main)
            raise bad_request(f"a container name must be specified for pod {request.name}, choose one of: [{listed}]")
        name = annotated
    name = name or main[0]
    if name not in names:
        raise bad_request(f"container {name} is not valid for pod {request.name}")
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {request.name} does not have a host assigned")
    if node.lost:
        raise ApiError(500, "error dialing backend: dial tcp 127.0.0.1:10250: i/o timeout")
    run = node.run(pod)
    state = run.container(name) if run is not None else None
    if state is not None and purpose == "log":
        found = state.previous if request.flag("previous") else state.running
        if found is None and request.flag("previous"):
            raise bad_request(f'previous terminated container "{name}" in pod "{request.name}" not found')
        if found is None:
            reason = state.state.get("waiting", {}).get("reason", "ContainerCreating")
            raise bad_request(f'container "{name}" in pod "{request.name}" is waiting to start: {reason}')
        return found
    if pod["status"]["phase"] in ("Succeeded", "Failed"):
        phase = pod["status"]["phase"]
        raise bad_request(f"cannot exec into a container in a completed pod; current phase is {phase}")
    if state is None or state.running is None or "running" not in state.state:
        raise ApiError(500, f'unable to upgrade connection: container not found ("{name}")')
    return state.running


async def send_log(node: Node, pod: Obj, request: KubeRequest, connection: Connection) -> None:
    """``log``: what a container wrote.

    Raises:
        ApiError: if there is no such container, or it has not begun.
    """
    container = _container(node, pod, request, "log")
    since = 0.0
    if seconds := request.one("sinceSeconds"):
        since = datetime.now().timestamp() - float(seconds)
    elif time := request.one("sinceTime"):
        since = datetime.fromisoformat(time).timestamp()
    tail = request.one("tailLines")
    asked: dict[str, Any] = {"tail": int(tail) if tail else None, "since": since}
    pieces = container.logs(follow=request.flag("follow"), timestamps=request.flag("timestamps"), **asked)
    with _stream(node, pod, connection):
        limit = request.one("limitBytes")
        await connection.chunks(_first(pieces, int(limit)) if limit else pieces, "text/plain")


async def _first(pieces: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[bytes]:
    async with contextlib.aclosing(pieces):
        async for piece in pieces:
            yield piece[:limit]
            if (limit := limit - len(piece)) <= 0:
                return


@contextlib.contextmanager
def _stream(node: Node, pod: Obj, connection: Connection) -> Any:
    """Let faults of the pod find the connection."""
    uid = pod["metadata"]["uid"]
    node.streams.setdefault(uid, set()).add(connection)
    try:
        yield
    finally:
        open_ones = node.streams.get(uid, set())
        open_ones.discard(connection)
        if not open_ones:
            node.streams.pop(uid, None)
