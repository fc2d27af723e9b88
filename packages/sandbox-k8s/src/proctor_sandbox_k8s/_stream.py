"""One exec: the connection over which a command is given its input, and what it writes comes back.

Everything here runs in a worker thread. The socket does not block; ``poll`` waits for it and for whoever wants the
thread to stop.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from proctor_sandbox_k8s._frames import BINARY, CLOSE, PING, PONG, BadFrame, FrameReader, encode

__all__ = ["ExecStream", "StreamCut"]

_STDIN, _STATUS = 0, 3
_CHUNK = 64 * 1024
_PING_EVERY = 15.0  # seconds of silence after which a ping shows routers, and us, that the connection lives
_SILENCE = 60.0  # seconds without a pong after which it is taken for dead


class StreamCut(Exception):
    """The connection of an exec ended, or went silent, in the middle."""


class ExecStream:
    """A WebSocket with Kubernetes' channels.

    Args:
        sock: the socket, after the handshake.
        woken: readable when the thread is to look up from what it does.
    """

    def __init__(self, sock: socket.socket, woken: socket.socket, clock: Callable[[], float] = time.monotonic) -> None:
        self._sock = sock
        self._woken = woken
        self._clock = clock
        self._frames = FrameReader()
        self._out: deque[memoryview] = deque()
        self._source = memoryview(b"")
        self._heard = self._pinged = clock()
        self.status: dict[str, Any] | None = None
        """What the server said at the end; ``None`` before."""
        self.closed = False
        sock.setblocking(False)

    def send(self, data: bytes) -> None:
        """Send to the shell's standard input, after what is being sent; it goes out while ``step`` waits."""
        self._source = memoryview(b"".join((self._source, data)) if self._source else data)

    @property
    def sent(self) -> bool:
        """Whether all was handed to the network."""
        return not self._source and not self._out

    def step(self, timeout: float) -> list[tuple[int, bytes]]:
        """Wait for something, for ``timeout`` seconds at most; what came, by channel.

        Raises:
            StreamCut: the connection broke, or is silent for too long.
        """
        self._refill()
        self._ping()
        events = select.POLLIN | (select.POLLOUT if self._out else 0)
        wait = min(timeout, _PING_EVERY)
        if not (isinstance(self._sock, ssl.SSLSocket) and self._sock.pending()):
            poll = select.poll()
            poll.register(self._sock, events)
            poll.register(self._woken, select.POLLIN)
            poll.poll(max(0.0, wait) * 1000)
        try:
            self._write()
            came = self._read()
        except BadFrame as error:
            raise StreamCut(f"what came is no WebSocket: {error}") from None
        except OSError as error:
            raise StreamCut(error.strerror or str(error) or type(error).__name__) from None
        if self._clock() - self._heard > _SILENCE:
            raise StreamCut(f"nothing was heard for {_SILENCE:g} s")
        return came

    def close(self) -> None:
        """Say good-bye if that needs no waiting, and close."""
        self.closed = True
        with contextlib.suppress(OSError):
            self._sock.send(encode(CLOSE, b"\x03\xe8"))  # 1000: a normal end
        with contextlib.suppress(OSError):
            self._sock.close()

    def _ping(self) -> None:
        now = self._clock()
        if now - max(self._heard, self._pinged) >= _PING_EVERY:
            self._pinged = now
            self._out.append(memoryview(encode(PING, b"")))

    def _refill(self) -> None:
        if self._source and not self._out:
            piece, self._source = self._source[:_CHUNK], self._source[_CHUNK:]
            self._out.append(memoryview(encode(BINARY, bytes([_STDIN]) + piece)))

    def _write(self) -> None:
        while self._out:
            try:
                done = self._sock.send(self._out[0])
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return
            except OSError:
                # The other side wants no more; what it has said until then is still to be read.
                self._out.clear()
                self._source = memoryview(b"")
                return
            if done < len(self._out[0]):
                self._out[0] = self._out[0][done:]
                return
            self._out.popleft()
            self._refill()

    def _read(self) -> list[tuple[int, bytes]]:
        came: list[tuple[int, bytes]] = []
        while not self.closed:
            try:
                data = self._sock.recv(_CHUNK)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            if not data:
                self.closed = True
                break
            self._heard = self._clock()
            self._take(data, came)
            if len(came) > 64:
                break
        return came

    def _take(self, data: bytes, came: list[tuple[int, bytes]]) -> None:
        for message in self._frames.feed(data):
            if message.opcode == CLOSE:
                self.closed = True
            elif message.opcode == PING:
                self._out.append(memoryview(encode(PONG, message.data)))
            elif message.opcode != PONG and message.data:
                channel, rest = message.data[0], message.data[1:]
                if channel == _STATUS:
                    self.status = _status(rest)
                elif rest:
                    came.append((channel, rest))


def _status(data: bytes) -> dict[str, Any]:
    try:
        told = json.loads(data)
    except ValueError:
        told = None
    return told if isinstance(told, dict) else {"message": data.decode("utf-8", "replace")}
