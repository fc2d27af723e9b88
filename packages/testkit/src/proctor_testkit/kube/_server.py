"""FakeKubernetes: a Kubernetes API server on loopback whose pods run, and which fails as told."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from proctor_testkit.kube._api import Api
from proctor_testkit.kube._backing import Backing
from proctor_testkit.kube._certificate import made_certificate
from proctor_testkit.kube._errors import ApiError
from proctor_testkit.kube._faults import RequestFaults
from proctor_testkit.kube._node import Node
from proctor_testkit.kube._place import Place
from proctor_testkit.kube._routes import Route, route
from proctor_testkit.kube._store import Obj, Store
from proctor_testkit.kube._types import KINDS
from proctor_testkit.kube._wire import HEAD_LIMIT, Connection, KubeRequest

__all__ = ["KubeServer"]

_T = TypeVar("_T")
_PATIENCE = 100.0  # seconds that a change to the fake may take
_PODS = KINDS["", "pods"]


class KubeServer(RequestFaults):
    """The engine of ``FakeKubernetes``: its thread, its connections, and what it counts."""

    def __init__(
        self,
        backing: Literal["processes", "docker"] = "processes",
        *,
        namespace: str = "default",
        context: str = "fake",
        token: str = "fake-token",
        tls: bool = True,
        docker_host: str | None = None,
        pause_image: str = "proctor-busybox:latest",
        pods: int = 10_000,
        cpus: float = 10_000,
        memory: float = 2.0**50,
    ) -> None:
        super().__init__()
        self.namespace = namespace
        self.context = context
        self.token = token
        self.requests: list[KubeRequest] = []
        self.connections = 0
        self._tls = tls
        self._changed = threading.Condition()
        self._place = Place()
        self._authority: Path | None = None
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-kubernetes", daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._backing = _backing(backing, self._place, docker_host)
        self._store = Store()
        self._node = Node(self._store, self._backing, pods=pods, cpus=cpus, memory=memory)
        self._node.pause = pause_image if backing == "docker" else ""
        self._api = Api(self._store, self._node)

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    def kubeconfig(self, path: str | Path | None = None, **more: Any) -> Path:
        """Write a kubeconfig that leads here; where it stands.

        Args:
            path: by default a file that ends with the server.
            more: of the user, in place of the token.
        """
        cluster: Obj = {"server": self.base_url}
        if self._authority is not None:
            cluster["certificate-authority-data"] = base64.b64encode(self._authority.read_bytes()).decode()
        named = {"cluster": "fake", "user": "fake", "namespace": self.namespace}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.context,
            "clusters": [{"name": "fake", "cluster": cluster}],
            "users": [{"name": "fake", "user": more or {"token": self.token}}],
            "contexts": [{"name": self.context, "context": named}],
        }
        written = Path(path) if path is not None else self._place.folder / "kubeconfig"
        written.write_text(json.dumps(config, indent=1))
        written.chmod(0o600)
        return written

    def count(self, kind: str) -> int:
        """How many requests came in whose kind has the regular expression ``kind`` in it."""
        return sum(re.search(kind, one.kind) is not None for one in list(self.requests))

    def wait(self, kind: str, count: int = 1, timeout: float = 60.0) -> bool:
        """Block until ``count`` requests of a kind came in; False when they did not within ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.count(kind) >= count, timeout)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._do(self._open())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._do(self._close())
        finally:
            self._stop()
        if self._node.errors and error is None:
            raise ExceptionGroup("the fake Kubernetes itself failed", self._node.errors)

    def _do(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something in the server's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    def _call(self, function: Callable[[], _T]) -> _T:
        async def work() -> _T:
            return function()

        return self._do(work())

    async def _open(self) -> None:
        context: ssl.SSLContext | None = None
        await asyncio.to_thread(self._place.open)
        if self._tls:
            context, self._authority = await asyncio.to_thread(made_certificate, self._place.folder)
        await self._backing.open()
        for name in dict.fromkeys(("default", "kube-system", self.namespace)):
            self._api.create(KINDS["", "namespaces"], "", {"metadata": {"name": name}})
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, backlog=1024, limit=HEAD_LIMIT, ssl=context
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._api.deletion.close()
        await self._node.close()
        await self._backing.close()
        for _ in range(3):
            await asyncio.sleep(0)  # what was closed has its end in the loop's next rounds

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        self._place.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        connection = Connection(reader, writer)
        try:
            while await self._exchange(connection):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client went away, or the engine does not answer
        except asyncio.CancelledError:
            writer.transport.abort()  # the server ends: it does not wait for a client's part in the end of TLS
        except Exception as error:
            self._node.errors.append(error)
        finally:
            writer.close()
            try:
                await writer.wait_closed()
            except (OSError, asyncio.CancelledError):
                writer.transport.abort()
            self._tasks.discard(task)

    async def _exchange(self, connection: Connection) -> bool:
        """One request and its answer; False when the connection is at its end."""
        try:
            method, path, query, headers, body = await connection.request()
        except ApiError as error:
            await connection.reply(error.code, error.status, {"connection": "close"})
            return False
        way = route(method, path, query)
        request = KubeRequest(way.words, method, path, way.namespace, way.name, query, headers, body)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        try:
            return await self._answer(way, request, connection)
        except ApiError as error:
            await connection.reply(error.code, error.status, error.headers)
            return True
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # a request that nobody thought of
            await connection.reply(400, ApiError(400, f"the fake Kubernetes cannot read this: {error!r}").status)
            return True

    async def _answer(self, way: Route, request: KubeRequest, connection: Connection) -> bool:
        fault = self._take(request.kind)
        if fault is not None and fault.do == "fail":
            raise ApiError(fault.status, fault.message, fault.reason, headers=dict(fault.headers))
        if fault is not None and fault.do == "reset":
            connection.reset()
            return False
        if fault is not None and fault.do == "hang":
            await connection.gone()
            return False
        if request.headers.get("authorization") != f"Bearer {self.token}":
            raise ApiError(401, "Unauthorized")
        connection.lost = fault is not None and fault.do == "lose"
        # A fault that befalls several requests counts the bytes of each by itself.
        connection.fault = fault.stream.fresh() if fault is not None and fault.stream is not None else None
        if way.sub == "exec":
            await self._api.handle(way, request, connection)
            return False
        if way.verb == "watch" or way.sub == "log":
            await _until_gone(connection, self._api.handle(way, request, connection))
            return False
        await self._api.handle(way, request, connection)
        return True


async def _until_gone(connection: Connection, work: Coroutine[Any, Any, None]) -> None:
    """Stop a stream when its client goes away, also while there is nothing to send."""
    loop = asyncio.get_running_loop()
    streaming, leaving = loop.create_task(work), loop.create_task(connection.gone())
    try:
        await asyncio.wait({streaming, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if streaming.done():
            streaming.result()
    finally:
        streaming.cancel()
        leaving.cancel()
        await asyncio.gather(streaming, leaving, return_exceptions=True)


def _backing(kind: str, place: Place, docker_host: str | None) -> Backing:
    if kind == "docker":
        from proctor_testkit.kube._docker import DockerBacking

        return DockerBacking(place, docker_host)
    if kind != "processes":
        raise ValueError(f'backing={kind!r}: say "docker" or "processes"')
    from proctor_testkit.kube._processes import ProcessBacking

    return ProcessBacking(place)
