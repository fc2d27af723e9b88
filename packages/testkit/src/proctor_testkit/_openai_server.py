"""FakeOpenAI: a server on loopback that speaks OpenAI's protocol and fails as told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any

from proctor_testkit._openai_wire import answer, chat_body, error_body, response_body

__all__ = ["FakeOpenAI", "FakeRequest"]

_ERRORS = {
    400: ("invalid_request_error", "invalid_request", "The request is wrong."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached."),
}


@dataclass(frozen=True, slots=True)
class FakeRequest:
    """A request that came in: its path with query, its headers (lower-case names) and its JSON body."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(slots=True)
class _Step:
    """What happens to one request."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    said: dict[str, Any] | None = None
    stall: bool = False
    drop: bool = False
    reset: bool = False


class FakeOpenAI:
    """A server for tests: chat completions and the Responses API under any prefix, Azure's paths included.

    It answers ``text`` until told otherwise. ``say``, ``fail``, ``send``, ``stall``, ``drop`` and ``reset`` queue what
    happens to the next requests, one each; ``always`` repeats the last queued step for ever; ``reply`` replaces the
    answer by a function of the request's body.

    Example::

        with FakeOpenAI() as server:
            server.fail(429, headers={"retry-after": "0.01"})
            server.say("Blue.")
            model = get_model("openai/gpt-4o-mini", base_url=server.base_url, api_key="any")
            ...
            assert len(server.requests) == 2
    """

    def __init__(self, text: str = "The answer is 4.") -> None:
        self.text = text
        self.requests: list[FakeRequest] = []
        self.headers: dict[str, str] = {}
        self.in_flight = 0
        self.peak = 0
        self.connections = 0
        self._arrived = threading.Condition()
        self._steps: deque[_Step] = deque()
        self._repeat: _Step | None = None
        self._reply: Callable[[dict[str, Any]], dict[str, Any] | Awaitable[dict[str, Any]]] | None = None
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-openai", daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._port = 0

    @property
    def base_url(self) -> str:
        """The address, with OpenAI's ``/v1``."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def root_url(self) -> str:
        """The address without a path, as Azure's resources have it."""
        return f"http://127.0.0.1:{self._port}"

    def say(self, text: str | None = None, **said: Any) -> None:
        """Answer the next request with a reply; the arguments are those of ``answer``."""
        self._steps.append(_Step(said=answer(text, **said)))

    def reply(self, function: Callable[[dict[str, Any]], dict[str, Any] | Awaitable[dict[str, Any]]]) -> None:
        """Answer with what ``function`` makes of a request's body: the result of ``FakeOpenAI.answer``.

        It may be a coroutine function, which runs in the server's own asyncio loop: it can hold a request back.
        """
        self._reply = function

    answer = staticmethod(answer)

    def fail(
        self,
        status: int,
        *,
        headers: Mapping[str, str] | None = None,
        message: str | None = None,
        kind: str | None = None,
        code: str | None = None,
    ) -> None:
        """Refuse the next request with an error as OpenAI writes it."""
        default = _ERRORS.get(status, ("server_error", "server_error", "The server had an error."))
        body = error_body(
            default[2] if message is None else message,
            kind=default[0] if kind is None else kind,
            code=default[1] if code is None else code,
        )
        self.send(status, json.dumps(body).encode(), headers)

    def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Answer the next request with exactly these bytes."""
        self._steps.append(_Step(status, headers or {}, body))

    def stall(self) -> None:
        """Take the next request and never answer it."""
        self._steps.append(_Step(stall=True))

    def drop(self) -> None:
        """Close the connection in the middle of the next answer."""
        self._steps.append(_Step(drop=True))

    def reset(self) -> None:
        """Take the next request and reset its connection: nothing is answered, not even an end."""
        self._steps.append(_Step(reset=True))

    def always(self) -> None:
        """Repeat the step that was queued last for all requests that follow."""
        self._repeat = self._steps[-1]

    def wait(self, count: int = 1, timeout: float = 60.0) -> bool:
        """Block until ``count`` requests came in; False when they did not within ``timeout`` seconds."""
        with self._arrived:
            return self._arrived.wait_for(lambda: len(self.requests) >= count, timeout)

    def __enter__(self) -> FakeOpenAI:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024))
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the server ends
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False when the connection is at its end."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        with self._arrived:
            self.requests.append(FakeRequest(path, headers, json.loads(raw) if raw else {}))
            self._arrived.notify_all()
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            return await self._answer(self.requests[-1], reader, writer)
        finally:
            self.in_flight -= 1

    async def _answer(self, request: FakeRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        step = self._steps.popleft() if self._steps else self._repeat or _Step()
        if step.stall:
            await reader.read()  # until the client gives up
            return False
        if step.reset:
            # A close that does not wait for data still unsent, of 0 seconds, is a reset (socket(7), SO_LINGER).
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        body = step.body if step.body is not None else await self._body(step, request)
        if body is None:
            step, body = _Step(404), json.dumps(error_body(f"Unknown path {request.path}")).encode()
        reason = HTTPStatus(step.status).phrase if step.status in HTTPStatus._value2member_map_ else "Unknown"
        lines = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "x-request-id": f"req_{len(self.requests)}",
            **self.headers,
            **step.headers,
        }
        start = f"HTTP/1.1 {step.status} {reason}\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in lines.items()
        )
        writer.write(start.encode("latin-1") + b"\r\n" + (body[: len(body) // 2] if step.drop else body))
        await writer.drain()
        return not step.drop

    async def _body(self, step: _Step, request: FakeRequest) -> bytes | None:
        if step.said is not None:
            said = step.said
        elif self._reply is None:
            said = answer(self.text)
        else:
            made = self._reply(request.body)
            said = await made if isinstance(made, Awaitable) else made
        path = request.path.partition("?")[0]
        if path.endswith("/chat/completions"):
            return json.dumps(chat_body(said, request.body)).encode()
        if path.endswith("/responses"):
            return json.dumps(response_body(said, request.body)).encode()
        return None
