"""A server on loopback that does to each request what a test queued: the engine of the fake model services."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, ClassVar, Self, TypeAlias

__all__ = ["FakeRequest", "Reply", "ScriptedServer", "Step"]

_DROP = 48
"""Bytes that drip at once."""

Reply: TypeAlias = dict[str, Any]
"""What a model says, in no protocol yet: what a server's ``answer`` makes."""


@dataclass(frozen=True, slots=True)
class FakeRequest:
    """A request that came in: its path with query, its headers (lower-case names) and its JSON body."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(slots=True)
class Step:
    """What happens to one request.

    Attributes:
        status: of the response.
        headers: of the response, beside the usual ones.
        body: exactly these bytes, or in pieces, which go out in chunks; None for a reply of the protocol.
        said: the reply; None for the server's usual one.
        stall: take the request and never answer it.
        drop: close the connection in the middle of the answer.
        reset: reset the connection in place of an answer.
        break_off: of a reply in pieces, send only so many ...
        then_stall: ... and go silent after them, instead of the end.
        drip: send a few bytes at a time, so many seconds apart.
        more: what the protocol's own server wants to know.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Sequence[bytes] | None = None
    said: Reply | None = None
    stall: bool = False
    drop: bool = False
    reset: bool = False
    break_off: int | None = None
    then_stall: bool = False
    drip: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def answer(
    text: str | None = None,
    *,
    calls: Sequence[tuple[str, Any]] = (),
    reasoning: str | None = None,
    usage: Mapping[str, int] | None = None,
    **more: Any,
) -> Reply:
    """What a model says, for a protocol that adds nothing of its own.

    Args:
        text: the text of the reply; None for one of tool calls only.
        calls: name and arguments of each tool call.
        reasoning: what the model thought.
        usage: of ``input`` and ``output``, token counts.
        more: what else the server's ``respond`` knows, such as a signature of the reasoning.
    """
    counts = {"input": 20, "output": 10, **(usage or {})}
    return {"text": text, "calls": list(calls), "reasoning": reasoning, "usage": counts, **more}


class ScriptedServer(ABC):
    """A fake model service on loopback: what it does to each request is queued before, its protocol is a subclass's.

    A subclass writes ``respond``. It speaks HTTP/1.1, whose bodies are JSON; connections are kept, cut, reset or left
    waiting as told. With such a server a suite may declare the capability ``faults``. It is a context manager; it runs
    in a thread of its own.

    Args:
        name: of its thread.
        text: what it answers until told otherwise.

    Attributes:
        requests: the requests so far.
        headers: sent with every answer.
        in_flight: requests that are being answered, and ``peak``, the most there were at once.
        connections: how many there were so far.

    Example::

        class AcmeServer(ScriptedServer):
            def respond(self, step, said, request):
                body = {"reply": said["text"], "tokens": said["usage"]}
                return replace(step, body=json.dumps(body).encode())

        with AcmeServer() as server:
            server.say("Blue.", usage={"input": 3, "output": 1})
            server.fail(429, headers={"retry-after": "2"})
    """

    answer: ClassVar[Callable[..., Reply]] = staticmethod(answer)
    """What a model says, from its text and from what else the protocol knows: the arguments of ``say``."""

    def __init__(self, name: str = "fake-service", text: str = "The answer is 4.") -> None:
        self.text = text
        self.requests: list[FakeRequest] = []
        self.headers: dict[str, str] = {}
        self.in_flight = 0
        self.peak = 0
        self.connections = 0
        self._changed = threading.Condition()
        self._steps: deque[Step] = deque()
        self._repeat: Step | None = None
        self._reply: Callable[[dict[str, Any]], Reply | Awaitable[Reply]] | None = None
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._port = 0

    @property
    def root_url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """Where a provider is to send its requests; override it when that has a path."""
        return self.root_url

    @abstractmethod
    def respond(self, step: Step, said: Reply, request: FakeRequest) -> Step:
        """The response that says ``said`` to ``request``.

        Args:
            step: what is to happen to the request.
            said: what ``answer`` made: ``text``, ``calls``, ``reasoning`` and ``usage``, unless it is overridden.
            request: as it came in.

        Returns:
            The step, by ``dataclasses.replace``, with the ``body`` that the protocol writes; pieces if it streams.
        """

    def fail(self, status: int, *, headers: Mapping[str, str] | None = None) -> None:
        """Refuse the next request; a protocol whose errors have a form overrides this, by ``send``."""
        self.send(status, json.dumps({"error": {"message": f"refused with {status}"}}).encode(), headers)

    def reply(self, function: Callable[[dict[str, Any]], Reply | Awaitable[Reply]]) -> None:
        """Answer with what ``function`` makes of a request's body: the result of the server's ``answer``.

        It may be a coroutine function, which runs in the server's own asyncio loop: it can hold a request back.
        """
        self._reply = function

    def say(self, text: str | None = None, **said: Any) -> None:
        """Answer the next request with a reply; the arguments are those of ``answer``."""
        self._steps.append(Step(said=self.answer(text, **said)))

    def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Answer the next request with exactly these bytes."""
        self._steps.append(Step(status, headers or {}, body))

    def stall(self, *, halfway: bool = False) -> None:
        """Take the next request and never answer it, or only the first half of the answer."""
        self._steps.append(Step(drop=True, then_stall=True) if halfway else Step(stall=True))

    def drip(self, seconds: float = 0.005) -> None:
        """Send the next answer a few bytes at a time, so many seconds apart: it is whole, and takes its time."""
        self._steps.append(Step(drip=seconds))

    def break_off(self, after: int = 2, *, stall: bool = False) -> None:
        """Send only the first messages of the next stream; then close the connection, or go silent (``stall``)."""
        self._steps.append(Step(break_off=after, then_stall=stall))

    def drop(self) -> None:
        """Close the connection in the middle of the next answer."""
        self._steps.append(Step(drop=True))

    def reset(self) -> None:
        """Take the next request and reset its connection: nothing is answered, not even an end."""
        self._steps.append(Step(reset=True))

    def always(self) -> None:
        """Repeat the step that was queued last for all requests that follow."""
        self._repeat = self._steps[-1]

    def wait(self, count: int = 1, timeout: float = 60.0) -> bool:
        """Block until ``count`` requests came in; False when they did not within ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= count, timeout)

    def wait_idle(self, timeout: float = 60.0) -> bool:
        """Block until no request is being answered, abandoned ones included; False when ``timeout`` seconds passed."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.in_flight, timeout)

    def __enter__(self) -> Self:
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
            self._loop.run_until_complete(self._end(server))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _end(self, server: asyncio.Server) -> None:
        """Close every connection, one that came just now, too; what is closed is gone some turns later."""
        # asyncio drops what it has accepted, and does not close it, when the server is closed before it has begun.
        for each in server.sockets:
            self._loop.remove_reader(each.fileno())
        await _turns()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await _turns()

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
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False when the connection is at its end."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        request = FakeRequest(path, headers, json.loads(raw) if raw else {})
        with self._changed:
            self.requests.append(request)
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
            self._changed.notify_all()
        try:
            return await self._answer(request, reader, writer)
        finally:
            with self._changed:
                self.in_flight -= 1
                self._changed.notify_all()

    async def _answer(self, request: FakeRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        step = self._steps.popleft() if self._steps else self._repeat or Step()
        if step.stall:
            await reader.read()  # until the client gives up
            return False
        if step.reset:
            # A close that does not wait for data still unsent, of 0 seconds, is a reset (socket(7), SO_LINGER).
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        made = step
        if step.body is None:
            made = self.respond(step, await self._said(step, request), request)
        pieces = _framed(made, request)
        cut = made.drop or made.break_off is not None
        if made.drop:
            whole = b"".join(pieces)
            pieces = [whole[: len(whole) // 2]]
        writer.write(self._head(made))
        for piece in pieces if made.drip is None else _drops(pieces):
            writer.write(piece)
            await writer.drain()
            if made.drip is not None:
                await asyncio.sleep(made.drip)
        if made.then_stall:
            await reader.read()
        return not cut

    async def _said(self, step: Step, request: FakeRequest) -> Reply:
        if step.said is not None:
            return step.said
        if self._reply is None:
            return self.answer(self.text)
        made = self._reply(request.body)
        return await made if isinstance(made, Awaitable) else made

    def _head(self, made: Step) -> bytes:
        reason = HTTPStatus(made.status).phrase if made.status in HTTPStatus._value2member_map_ else "Unknown"
        size = (
            {"content-length": str(len(made.body))}
            if isinstance(made.body, bytes)
            else {"transfer-encoding": "chunked"}
        )
        lines = {"content-type": "application/json", **size, **self.headers, **made.headers}
        start = f"HTTP/1.1 {made.status} {reason}\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in lines.items()
        )
        return start.encode("latin-1") + b"\r\n"


def _drops(pieces: Sequence[bytes]) -> list[bytes]:
    whole = b"".join(pieces)
    return [whole[start : start + _DROP] for start in range(0, len(whole), _DROP)]


async def _turns() -> None:
    """Let the loop turn until what it has begun is done: asyncio accepts, and closes, a connection in some turns."""
    for _ in range(20):
        await asyncio.sleep(0)


def _framed(made: Step, request: FakeRequest) -> list[bytes]:
    """The body as it goes over the wire: as it is, or in chunks."""
    assert made.body is not None, f"no answer to {request.path}"
    if isinstance(made.body, bytes):
        return [made.body]
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in made.body[: made.break_off]]
    return chunks if made.break_off is not None else [*chunks, b"0\r\n\r\n"]
