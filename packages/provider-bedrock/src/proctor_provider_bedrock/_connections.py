"""Calls that can be ended from outside: the connection of a call is known, and closed under the thread that reads it.

boto3 has no way to cancel a call, and a thread in it would stay for as long as the service keeps silent.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from contextvars import ContextVar
from typing import Any

__all__ = ["Call", "current", "track_connections"]

current: ContextVar[Call | None] = ContextVar("proctor_bedrock_call", default=None)
"""The call that this thread makes."""

_lock = threading.Lock()  # whose a connection is changes when the pool hands it on; held for instants only


class Call:
    """One call in a worker thread.

    Attributes:
        headers: what goes along with its request.
    """

    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers
        self._over = False
        self._connection: Any = None

    def use(self, connection: Any) -> None:
        """Note the connection; in the call's own thread.

        Raises:
            ConnectionAbortedError: if the call is over.
        """
        with _lock:
            if self._over:
                raise ConnectionAbortedError("the call was cancelled")
            self._connection = connection
            connection.proctor_call = self

    def end(self) -> None:
        """Close the call's connection, unless another call has it by now; from any thread, without waiting."""
        with _lock:
            self._over = True
            connection = self._connection
            if connection is None or connection.proctor_call is not self or connection.sock is None:
                return
            with contextlib.suppress(OSError):  # it is closed already
                # A close would leave the other thread in its read; this ends the read.
                connection.sock.shutdown(socket.SHUT_RDWR)


def _note(connection: Any) -> None:
    call = current.get()
    if call is not None:
        call.use(connection)


def _tracked(pool: Any) -> Any:
    """A class of pools like ``pool`` whose connections tell the current call of themselves."""

    class Connection(pool.ConnectionCls):  # type: ignore[misc]  # urllib3's, as botocore extends it
        def connect(self) -> None:
            _note(self)
            super().connect()
            _note(self)  # it may have been ended while there was no socket to close

        def request(self, *args: Any, **kwargs: Any) -> Any:
            _note(self)
            return super().request(*args, **kwargs)

    class Pool(pool):  # type: ignore[misc]
        ConnectionCls = Connection

    return Pool


def track_connections(client: Any) -> Any:
    """Let the connections of a boto3 client be ended by ``Call.end``.

    Returns:
        What sends the client's requests; None when this version of the SDK has no place for that, so that a cancelled
        call's thread stays until the service answers or the read times out.
    """
    # The SDK has no public name for its pools; these two have been there since 2018.
    session = getattr(getattr(client, "_endpoint", None), "http_session", None)
    pools = getattr(session, "_pool_classes_by_scheme", None)
    if not isinstance(pools, dict) or not all(hasattr(pool, "ConnectionCls") for pool in pools.values()):
        return None
    for scheme, pool in list(pools.items()):
        pools[scheme] = _tracked(pool)
    return session
