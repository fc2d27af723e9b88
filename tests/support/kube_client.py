"""A client of the Kubernetes API that shows what goes over the wire, for tests of the fake one."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from proctor_testkit import FakeKubernetes

__all__ = ["Command", "KubeClient"]

_WAIT = 60  # seconds


@dataclass
class Command:
    """What came back of a command, by channel, and how its connection ended."""

    channels: dict[int, bytes] = field(default_factory=dict)
    messages: int = 0
    end: str = ""

    @property
    def out(self) -> bytes:
        """What it wrote."""
        return self.channels.get(1, b"")

    @property
    def status(self) -> Any:
        """How the server says it ended; None if it did not say."""
        return json.loads(self.channels[3]) if 3 in self.channels else None

    @property
    def code(self) -> int | None:
        """Its exit code, if the server said so."""
        if self.status is None:
            return None
        if self.status["status"] == "Success":
            return 0
        causes = self.status.get("details", {}).get("causes", [])
        return next((int(one["message"]) for one in causes if one.get("reason") == "ExitCode"), None)


class KubeClient:
    """Requests to one cluster, in its own namespace."""

    def __init__(self, cluster: FakeKubernetes) -> None:
        config = json.loads(cluster.kubeconfig().read_text())
        self._token = config["users"][0]["user"]["token"]
        self._address = urlsplit(config["clusters"][0]["cluster"]["server"])
        authority = config["clusters"][0]["cluster"].get("certificate-authority-data")
        data = base64.b64decode(authority).decode() if authority else None
        self._context = ssl.create_default_context(cadata=data) if data else None
        self.pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
        self.core = f"/api/v1/namespaces/{cluster.namespace}"

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        """The status and the object of an answer."""
        status, _, data = self.raw(method, path, body, **query)
        return status, json.loads(data) if data else None

    def raw(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **query: Any
    ) -> tuple[int, dict[str, str], bytes]:
        """The status, the headers and the bytes of an answer."""
        connection = self._connect()
        try:
            given = None if body is None else json.dumps(body)
            target = path + (f"?{urlencode(query, doseq=True)}" if query else "")
            connection.request(method, target, given, {"Authorization": f"Bearer {self._token}", "Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def until(self, name: str, phase: str) -> Any:
        """Watch a pod until it is in a phase, ``Running`` with all its containers; ``Gone``: until it is deleted."""
        version = self.call("GET", self.pods)[1]["metadata"]["resourceVersion"]
        status, found = self.call("GET", f"{self.pods}/{name}")
        if (phase == "Gone" and status == 404) or (status == 200 and _is_in(found, phase)):
            return found
        with self.watch(resourceVersion=version, fieldSelector=f"metadata.name={name}") as events:
            for event in events:
                if event["type"] == "DELETED" if phase == "Gone" else _is_in(event["object"], phase):
                    return event["object"]
        raise AssertionError(f"the watch ended before {name} was {phase}")

    @contextmanager
    def watch(self, path: str = "", **query: Any) -> Iterator[Iterator[Any]]:
        """The events of a watch, as they come."""
        connection = self._connect()
        try:
            target = f"{path or self.pods}?{urlencode({'watch': 'true', **query})}"
            connection.request("GET", target, headers={"Authorization": f"Bearer {self._token}"})
            answer = connection.getresponse()
            yield (json.loads(line) for line in iter(answer.readline, b""))
        finally:
            connection.close()

    def exec(
        self, pod: str, command: Sequence[str], data: bytes | None = None, protocol: str = "v5.channel.k8s.io"
    ) -> Command:
        """Run a command, give it input if there is some, and take what comes until the connection ends.

        Raises:
            ConnectionRefusedError: if the server does no handshake; with the status.
        """
        with self.session(pod, command, stdin=data is not None, protocol=protocol) as session:
            if data is not None:
                for start in range(0, len(data), 30_000):
                    session.send(0, data[start : start + 30_000])
                session.send(255, b"\0")
            return session.rest()

    @contextmanager
    def session(
        self, pod: str, command: Sequence[str], *, protocol: str = "v5.channel.k8s.io", **asked: Any
    ) -> Iterator[Session]:
        """A command that is spoken with; ``asked`` are ``stdin``, ``tty``, ``container``."""
        connection = self._connect()
        try:
            query = {"command": list(command), "stdout": "true", "stderr": "true"}
            query |= {name: value if isinstance(value, str) else str(value).lower() for name, value in asked.items()}
            lines = {"Authorization": f"Bearer {self._token}", "Connection": "Upgrade", "Upgrade": "websocket"}
            lines["Sec-WebSocket-Key"] = base64.b64encode(os.urandom(16)).decode()
            lines |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": protocol}
            connection.request("GET", f"{self.pods}/{pod}/exec?{urlencode(query, doseq=True)}", headers=lines)
            answer = http.client.HTTPResponse(connection.sock, method="GET")
            answer.begin()
            if answer.status != 101:
                raise ConnectionRefusedError(f"{answer.status} {answer.read().decode()}")
            yield Session(connection, answer)
            answer.close()
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        host, port = str(self._address.hostname), self._address.port
        if self._context is not None:
            return http.client.HTTPSConnection(host, port, timeout=_WAIT, context=self._context)
        return http.client.HTTPConnection(host, port, timeout=_WAIT)


class Session:
    """A WebSocket, the client's side."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._socket = connection.sock
        self._file = answer.fp
        self.protocol = answer.getheader("Sec-WebSocket-Protocol")

    def send(self, channel: int, data: bytes) -> None:
        """A message on a channel."""
        self.frame(2, bytes([channel]) + data)

    def frame(self, opcode: int, data: bytes, *, final: bool = True) -> None:
        """Any frame."""
        size, mask = len(data), os.urandom(4)
        head = bytes([(0x80 if final else 0) | opcode])
        head += bytes([0x80 | size]) if size < 126 else struct.pack("!BH", 0xFE, size)
        self._socket.sendall(head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))

    def rest(self) -> Command:
        """All that comes until the end."""
        found = Command()
        try:
            while (message := self.receive()) is not None:
                found.messages += 1
                if message:
                    found.channels[message[0]] = found.channels.get(message[0], b"") + message[1:]
            found.end = "closed"
        except EOFError:
            found.end = "cut"
        except ConnectionResetError:
            found.end = "reset"
        except TimeoutError:
            found.end = "silent"
        return found

    def receive(self) -> bytes | None:
        """The next message; None at the end that the server announces.

        Raises:
            EOFError: if the connection ends without that.
        """
        first, second = self._exactly(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", self._exactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._exactly(8))
        data = self._exactly(size)
        return None if first & 0x0F == 8 else data

    def patience(self, seconds: float) -> None:
        """How long silence is borne."""
        self._socket.settimeout(seconds)

    def _exactly(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        if len(data) < size:
            raise EOFError
        return data


def _is_in(pod: Any, phase: str) -> bool:
    """Whether a pod is in a phase; one of several containers is enough for ``Running``, and not for tests."""
    status = pod["status"]
    waiting = phase == "Running" and any("waiting" in one["state"] for one in status.get("containerStatuses") or ())
    return status["phase"] == phase and not waiting
