"""FaultProxy: stands before an HTTP server on loopback, counts what passes, and breaks what it is told to."""

from __future__ import annotations

import http.client
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit

__all__ = ["FaultProxy", "ProxiedRequest"]

_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "date", "server"})
_ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{0}</Code><Message>{0}, made by FaultProxy</Message></Error>'
)


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """A request that came in.

    Attributes:
        method: such as ``PUT``.
        path: with the query.
        sent: bytes of its body.
        received: bytes of the body of the reply; 0 when there was none.
        status: of the reply; 0 when the connection was cut.
    """

    method: str
    path: str
    sent: int
    received: int
    status: int


@dataclass(slots=True)
class _Fault:
    pattern: re.Pattern[str]
    times: int | None  # for ever if None
    kind: Literal["fail", "delay", "cut", "lose"]
    status: int = 0
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class FaultProxy:
    """A server for tests that passes every request on to ``upstream``, except for those that it is told to break.

    ``fail``, ``delay``, ``cut`` and ``lose_reply`` each say what happens to the next requests (``times`` of them, or
    all until ``clear`` when it is ``None``) whose ``"METHOD /path?query"`` has the regular expression ``match`` in it.
    They take effect in the order in which they were given; a delay lets the request go on to the next of them.

    Attributes:
        requests: all requests so far, in the order of their replies.
        on_request: called with method and path before each request is looked at; it may block, or kill somebody.

    Example::

        with FaultProxy("http://127.0.0.1:5000") as proxy:
            os.environ["AWS_ENDPOINT_URL"] = proxy.base_url
            proxy.fail(503, "SlowDown", times=3, match="^PUT")
            ...
            assert proxy.uploaded < 2.2 * size
    """

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._lock = threading.Lock()
        self._faults: list[_Fault] = []
        self._connections: set[socket.socket] = set()
        self._skew = 0.0
        self._tolerance: float | None = None
        self.requests: list[ProxiedRequest] = []
        self.on_request: Callable[[str, str], object] | None = None
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.disconnect()

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def uploaded(self) -> int:
        """Bytes in the bodies of all requests so far."""
        return sum(one.sent for one in list(self.requests))

    @property
    def downloaded(self) -> int:
        """Bytes in the bodies of all replies so far."""
        return sum(one.received for one in list(self.requests))

    def fail(
        self,
        status: int,
        code: str = "InternalError",
        *,
        times: int | None = 1,
        match: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Answer with an error of S3's form, such as 503 and ``SlowDown`` or 400 and ``ExpiredToken``."""
        self._add(_Fault(re.compile(match), times, "fail", status, code, headers or {}))

    def delay(self, seconds: float, *, times: int | None = 1, match: str = "") -> None:
        """Wait before the request is passed on."""
        self._add(_Fault(re.compile(match), times, "delay", seconds=seconds))

    def cut(self, *, times: int | None = 1, match: str = "") -> None:
        """Reset the connection; the server hears nothing of the request."""
        self._add(_Fault(re.compile(match), times, "cut"))

    def lose_reply(self, *, times: int | None = 1, match: str = "") -> None:
        """Pass the request on, and reset the connection instead of handing the reply back."""
        self._add(_Fault(re.compile(match), times, "lose"))

    def skew(self, seconds: float, *, tolerance: float | None = None) -> None:
        """Have the server's clock (the ``Date`` of replies) be so much ahead.

        With ``tolerance`` (seconds; 900 at Amazon), requests that are signed by a clock farther away than that are
        refused with ``RequestTimeTooSkewed``, as is a request without ``X-Amz-Date``.
        """
        self._skew, self._tolerance = seconds, tolerance

    def _refuses(self, signed: str) -> bool:
        if self._tolerance is None:
            return False
        try:
            at = datetime.strptime(f"{signed}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
        except ValueError:
            return True
        return abs(at - time.time() - self._skew) > self._tolerance

    def clear(self) -> None:
        """Break nothing any more."""
        with self._lock:
            self._faults.clear()

    def disconnect(self) -> None:
        """Reset all connections that are open now."""
        with self._lock:
            for one in self._connections:
                _reset(one)

    def _add(self, fault: _Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    def _take(self, what: str, seen: set[int]) -> _Fault | None:
        """The first fault that applies and has not been seen by this request, used up by one."""
        with self._lock:
            for fault in self._faults:
                if id(fault) not in seen and fault.pattern.search(what):
                    seen.add(id(fault))
                    if fault.times is not None:
                        fault.times -= 1
                        if fault.times <= 0:
                            self._faults.remove(fault)
                    return fault
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self.proxy._lock:
            self.proxy._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self.proxy._lock:
            self.proxy._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections break here by design."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _any(self) -> None:
        proxy, what = self.server.proxy, f"{self.command} {self.path}"
        body = self._body()
        if proxy.on_request is not None:
            proxy.on_request(self.command, self.path)
        if proxy._refuses(self.headers.get("X-Amz-Date", "")):
            self._reply(len(body), 403, {}, _ERROR.format("RequestTimeTooSkewed").encode())
            return
        seen: set[int] = set()
        lose = False
        while (fault := proxy._take(what, seen)) is not None:
            if fault.kind == "delay":
                time.sleep(fault.seconds)
            elif fault.kind == "fail":
                self._reply(len(body), fault.status, fault.headers, _ERROR.format(fault.code).encode())
                return
            elif fault.kind == "cut":
                self._cut(len(body))
                return
            else:
                lose = True
        status, headers, reply = self._forward(body)
        if lose:
            self._cut(len(body))
        else:
            self._reply(len(body), status, headers, reply)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _any

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        upstream = http.client.HTTPConnection(*self.server.proxy._upstream, timeout=60)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "expect"):
                    upstream.putheader(name, value)
            if body or self.command in ("PUT", "POST"):
                upstream.putheader("Content-Length", str(len(body)))
            upstream.endheaders(body or None)
            reply = upstream.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read()
        finally:
            upstream.close()

    def _reply(self, sent: int, status: int, headers: Mapping[str, str], body: bytes) -> None:
        proxy = self.server.proxy
        alone = self.command == "HEAD" or status in (204, 304)
        proxy.requests.append(ProxiedRequest(self.command, self.path, sent, 0 if alone else len(body), status))
        self.send_response_only(status)
        given = {name.lower() for name in headers}
        self.send_header("Date", self.date_time_string(time.time() + proxy._skew))
        for name, value in headers.items():
            if name.lower() not in _HOP and (name.lower() != "content-length" or self.command == "HEAD"):
                self.send_header(name, value)
        if not (self.command == "HEAD" and "content-length" in given):
            self.send_header("Content-Length", "0" if alone else str(len(body)))
        self.end_headers()
        if not alone:
            self.wfile.write(body)

    def _cut(self, sent: int) -> None:
        self.server.proxy.requests.append(ProxiedRequest(self.command, self.path, sent, 0, 0))
        self.close_connection = True
        _reset(self.connection)


def _reset(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
