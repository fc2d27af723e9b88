"""The proxy passes on what it is given, and breaks what it is told to break."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from serving import serving

from proctor_testkit import FaultProxy, ProxiedRequest


class Echo(BaseHTTPRequestHandler):
    """Answers with what it got."""

    protocol_version = "HTTP/1.1"
    seen: list[str] = []

    def _any(self) -> None:
        self.seen.append(self.command)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("X-Given", self.headers.get("X-Given", ""))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = _any

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    Echo.seen.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    with serving(server), FaultProxy(f"http://127.0.0.1:{server.server_address[1]}") as proxy:
        yield proxy


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(proxy.base_url.removeprefix("http://"), timeout=20)
    yield connection
    connection.close()


def put(client: http.client.HTTPConnection, body: bytes = b"hello", path: str = "/a?x=1") -> tuple[int, bytes]:
    client.request("PUT", path, body, {"X-Given": "kept"})
    reply = client.getresponse()
    return reply.status, reply.read()


def test_requests_pass_and_are_counted(proxy: FaultProxy, client: http.client.HTTPConnection) -> None:
    client.request("PUT", "/a?x=1", b"hello", {"X-Given": "kept"})
    reply = client.getresponse()

    assert (reply.status, reply.read(), reply.headers["X-Given"]) == (200, b"hello", "kept")
    assert proxy.requests == [ProxiedRequest("PUT", "/a?x=1", 5, 5, 200)]
    assert (proxy.uploaded, proxy.downloaded) == (5, 5)


def test_bodies_in_chunks_pass(client: http.client.HTTPConnection) -> None:
    client.request("PUT", "/a", iter([b"one", b"two"]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})

    assert client.getresponse().read() == b"onetwo"


def test_a_reply_without_a_body_keeps_its_length(client: http.client.HTTPConnection) -> None:
    client.request("HEAD", "/a", b"12345")
    reply = client.getresponse()

    assert (reply.headers["Content-Length"], reply.read()) == ("5", b"")


def test_errors_come_as_often_as_was_said_and_where(proxy: FaultProxy, client: http.client.HTTPConnection) -> None:
    proxy.fail(503, "SlowDown", times=2, match=r"^PUT /a")

    assert put(client, path="/b")[0] == 200
    status, body = put(client)
    assert status == 503 and b"<Code>SlowDown</Code>" in body
    assert [put(client)[0] for _ in range(2)] == [503, 200]
    assert len(Echo.seen) == 2


def test_clear_ends_what_would_go_on_for_ever(proxy: FaultProxy, client: http.client.HTTPConnection) -> None:
    proxy.fail(403, "AccessDenied", times=None)
    assert [put(client)[0] for _ in range(3)] == [403] * 3

    proxy.clear()

    assert put(client)[0] == 200


def test_a_cut_is_not_heard_of_by_the_server_and_a_lost_reply_is(
    proxy: FaultProxy, client: http.client.HTTPConnection
) -> None:
    proxy.cut()
    with pytest.raises(OSError):
        put(client)
    assert Echo.seen == []
    client.close()

    proxy.lose_reply()
    with pytest.raises(OSError):
        put(client)

    assert Echo.seen == ["PUT"]
    assert [one.status for one in proxy.requests] == [0, 0]


def test_a_delay_lets_the_request_go_on_to_the_next_fault(
    proxy: FaultProxy, client: http.client.HTTPConnection
) -> None:
    proxy.delay(0.001)
    proxy.fail(500)

    assert put(client)[0] == 500


def test_the_clock_of_the_server_is_what_it_is_set_to(proxy: FaultProxy, client: http.client.HTTPConnection) -> None:
    def date() -> float:
        client.request("GET", "/")
        reply = client.getresponse()
        reply.read()
        return parsedate_to_datetime(reply.headers["Date"]).timestamp()

    before = date()
    proxy.skew(3600)

    assert 3599 <= date() - before <= 3660


def test_somebody_is_told_before_each_request(proxy: FaultProxy, client: http.client.HTTPConnection) -> None:
    told: list[tuple[str, str]] = []
    proxy.on_request = lambda method, path: told.append((method, path))

    put(client)

    assert told == [("PUT", "/a?x=1")]
