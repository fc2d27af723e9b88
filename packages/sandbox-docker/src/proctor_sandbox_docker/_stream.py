"""A connection on which the engine hands over the streams of a command; it blocks, so it is for threads.

The SDK gives its socket away only after it has read from it through a buffer, in which the first output of a quick
command is lost, and it can't write and read at once. So this request is made here.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from docker.errors import APIError
from requests import Response

from proctor_sandbox_docker._address import Address
from proctor_sandbox_docker._frames import Frames

__all__ = ["Stopped", "Stream", "connected"]

_CHUNK = 256 * 1024
_ANSWER_SECONDS = 60.0
_MAX_HEAD = 64 * 1024
_LAST_WORDS = 3.0
"""Seconds without output after which a command that has ended has said all: engines wait for two themselves."""


class Stopped(Exception):
    """Nobody waits for the stream any more."""


class Stream:
    """The streams of one command.

    Args:
        address: of the engine.
        frames: takes in what the command writes.
    """

    def __init__(self, address: Address, frames: Frames) -> None:
        self._address = address
        self._frames = frames
        self._lock = threading.Lock()
        self._ours: socket.socket | None = None
        self._theirs: socket.socket | None = None
        """Two ends: by what is sent into ours, ``run`` wakes. Made when there is something to wake."""
        self._stopped = self._closed = False
        self.begun = False
        self._socket: socket.socket | None = None
        self._rest = b""

    def stop(self) -> None:
        """End ``run`` and ``open`` from another thread."""
        with self._lock:
            self._stopped = True
            if self._ours is not None and not self._closed:
                with suppress(OSError):
                    self._ours.send(b"x")

    @property
    def stopped(self) -> bool:
        """Whether somebody called ``stop``."""
        return self._stopped

    def begin(self) -> bool:
        """Whether the command may begin: nobody called ``stop`` before. What begins is to be ended, then."""
        with self._lock:
            if not self._stopped:
                self._ours, self._theirs = socket.socketpair()
                self.begun = True
            return self.begun

    def close(self) -> None:
        """Give the sockets back."""
        with self._lock:
            self._closed = True
            for each in (self._ours, self._theirs, self._socket):
                if each is not None:
                    each.close()

    def open(self, path: str, body: dict[str, object]) -> None:
        """Post ``body`` to ``path``, which begins the command. It is never posted twice.

        Raises:
            APIError: the engine refuses.
            OSError: it does not answer.
        """
        sock = self._socket = connected(self._address)
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
            f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        sock.sendall(head.encode() + content)
        said = b""
        while b"\r\n\r\n" not in said:
            more = sock.recv(_CHUNK)
            if not more or len(said) > _MAX_HEAD:
                raise ConnectionError("the engine closed the connection without an answer")
            said += more
        answer, _, self._rest = said.partition(b"\r\n\r\n")
        status = int(answer.split(None, 2)[1])
        if status not in (101, 200):
            raise _refusal(status, answer.decode("latin-1"), _body(sock, answer, self._rest))
        sock.setblocking(False)

    def run(self, stdin: bytes | None, ended: Callable[[], bool]) -> None:
        """Write ``stdin`` and read what the command writes, until it has ended.

        Args:
            stdin: what is written; ``None`` when the command has no input.
            ended: whether the command has ended, asked when nothing comes for a while: what it left in the background
                may hold the streams open.

        Raises:
            Stopped: ``stop`` was called, or a stream is full.
            OSError: the connection broke.
        """
        assert self._socket is not None and self._theirs is not None
        sock, theirs = self._socket, self._theirs
        rest, self._rest = self._rest, b""
        self._frames.feed(rest)
        left = memoryview(stdin or b"")
        pause, quiet_since, over = 1.0, time.monotonic(), False
        with selectors.DefaultSelector() as selector:
            selector.register(theirs, selectors.EVENT_READ)
            selector.register(sock, _wanted(left))
            while True:
                ready = {key.fileobj: mask for key, mask in selector.select(pause)}
                if theirs in ready or self._frames.full:
                    raise Stopped
                mask = ready.get(sock, 0)
                if mask & selectors.EVENT_WRITE:
                    left = self._write(sock, left)
                    if not left:
                        selector.modify(sock, selectors.EVENT_READ)
                    quiet_since = time.monotonic()
                if mask & selectors.EVENT_READ:
                    if not self._read(sock):
                        return
                    quiet_since = time.monotonic()
                    pause = _LAST_WORDS if over else 1.0
                elif time.monotonic() - quiet_since >= pause:
                    if over:
                        return
                    over = ended()  # what it has written may be on its way through the engine still
                    pause, quiet_since = _LAST_WORDS if over else min(pause * 2, 30.0), time.monotonic()

    def _write(self, sock: socket.socket, left: memoryview) -> memoryview:
        try:
            left = left[sock.send(left[:_CHUNK]) :]
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return left
        except (BrokenPipeError, ConnectionResetError):
            return memoryview(b"")  # the command does not read on; what it has written comes yet
        if not left:
            _half_close(sock)
        return left

    def _read(self, sock: socket.socket) -> bool:
        """Whether there may be more."""
        while True:
            try:
                data = sock.recv(_CHUNK)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return True
            except ConnectionResetError:
                return False  # the engine's answer about the command says how it ended
            if not data:
                return False
            self._frames.feed(data)
            if self._frames.full or not isinstance(sock, ssl.SSLSocket):
                return True  # TLS may hold more than the selector can see


def _wanted(left: memoryview) -> int:
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if left else 0)


def connected(address: Address) -> socket.socket:
    """A socket that is connected with the engine.

    Raises:
        OSError: nobody listens, or does not answer within a minute.
    """
    if address.socket_path is not None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(_ANSWER_SECONDS)
            sock.connect(address.socket_path)
        except BaseException:
            sock.close()
            raise
        return sock
    host, port = address.host_port
    sock = socket.create_connection((host, port), timeout=_ANSWER_SECONDS)
    if not address.tls:
        return sock
    try:
        return _tls_context(address).wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def _tls_context(address: Address) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=address.ca)
    if not address.verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if address.cert and address.key:
        context.load_cert_chain(address.cert, address.key)
    return context


def _half_close(sock: socket.socket) -> None:
    """Say that no more input comes."""
    with suppress(OSError, ssl.SSLError):
        if isinstance(sock, ssl.SSLSocket):
            sock.unwrap()  # sends TLS's own end of data; the other side's does not have to come for that
        else:
            sock.shutdown(socket.SHUT_WR)


def _body(sock: socket.socket, head: bytes, begun: bytes) -> bytes:
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    sock.settimeout(2.0)
    while len(begun) < (int(length[1]) if length else _MAX_HEAD):
        try:
            more = sock.recv(_CHUNK)
        except OSError:
            break
        if not more:
            break
        begun += more
    return begun


def _refusal(status: int, head: str, body: bytes) -> APIError:
    text = body.decode("utf-8", "replace").strip()
    with suppress(ValueError, AttributeError, IndexError):
        text = json.loads(text[text.index("{") : text.rindex("}") + 1])["message"]
    response = Response()
    response.status_code = status
    response.reason = head.partition("\r\n")[0].split(None, 2)[-1]
    return APIError(text, response=response, explanation=text)
