"""Who writes or holds a log: an object ``<log>.lease`` that is written again and again while its writer lives.

Whether it is dead is judged by the server's clock alone: when the object was written, and what time the server has now.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from proctor.contracts import LogBusyError, LogLease
from proctor_log_s3._client import Client, Place

__all__ = ["DEAD", "RENEW", "Lease", "holder_of", "lease_of"]

RENEW = 30.0  # seconds between writes
DEAD = 120.0  # seconds without one after which its writer counts as dead
_LATEST = 1e11  # seconds since the epoch: what is no time can stand there, too
_AGAIN = 5.0  # seconds until another try when the store did not answer


class Holder(NamedTuple):
    """What a lease says."""

    etag: str
    age: float  # seconds, by the server's clock
    said: dict[str, Any]

    def refusal(self, name: str) -> LogBusyError:
        """The error for who wants the log, too."""
        host, pid, since = (self.said.get(field) for field in ("host", "pid", "since"))
        return LogBusyError(
            f"s3://{name}",
            host=host if isinstance(host, str) else None,
            pid=pid if isinstance(pid, int) else None,
            since=since if isinstance(since, float) and 0 <= since < _LATEST else None,
        )


def lease_of(key: str) -> str:
    """The key of a log's lease."""
    return f"{key}.lease"


def holder_of(client: Client, place: Place) -> Holder | None:
    """Who has the log at ``place``, dead or alive."""
    try:
        reply = client.call("get_object", (place[0], lease_of(place[1])))
    except FileNotFoundError:
        return None
    now = reply["ResponseMetadata"]["HTTPHeaders"].get("date")
    age = (parsedate_to_datetime(now) - reply["LastModified"]).total_seconds() if now else 0.0
    try:
        said = json.loads(reply["Body"])
    except ValueError:
        said = {}
    return Holder(reply["ETag"], age, said if isinstance(said, dict) else {})


class Lease(LogLease):
    """A lease that this process has, with the thread that keeps it.

    Args:
        client: for the requests.
        place: of the log.
        renew: seconds between writes.
        dead: seconds after which a lease of somebody else is taken over.

    Raises:
        LogBusyError: somebody else has the log and is alive.
    """

    def __init__(self, client: Client, place: Place, *, renew: float = RENEW, dead: float = DEAD) -> None:
        self._client, self._place, self._renew_after = client, place, renew
        self._name = "/".join(place)
        self._object = place[0], lease_of(place[1])
        self._count = 0
        self._said: dict[str, Any] = {"host": socket.gethostname(), "pid": os.getpid(), "since": time.time()}
        self._token = self._said["token"] = secrets.token_hex(8)
        self._lost: LogBusyError | None = None
        self._closed = False
        self._end = threading.Event()
        self._etag = self._claim(dead)
        self._thread = threading.Thread(target=self._keep, name=f"lease {self._name[-40:]}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise when somebody else has taken the log: this process was out of touch for so long that it looked dead.

        Raises:
            LogBusyError: that is so.
        """
        if self._lost is not None:
            raise self._lost

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self._delete()

    def forget(self) -> None:
        """Let go of the log without waiting for a store that does not answer."""
        self._end.set()
        threading.Thread(target=self._delete, daemon=True).start()

    def _delete(self) -> None:
        closed, self._closed = self._closed, True
        if not closed and self._lost is None:
            with suppress(OSError):  # it is dead by itself soon
                self._client.call("delete_object", self._object)

    def _claim(self, dead: float) -> str:
        found = holder_of(self._client, self._place)
        if found is not None and found.age < dead:
            raise found.refusal(self._name)
        try:
            etag = self._write(**({"IfNoneMatch": "*"} if found is None else {"IfMatch": found.etag}))
        except (FileExistsError, FileNotFoundError):
            etag = ""
        # A server that knows no conditions has written both of two leases: the later one counts.
        now = holder_of(self._client, self._place)
        if now is None or now.said.get("token") != self._token:
            raise LogBusyError(f"s3://{self._name}") if now is None else now.refusal(self._name)
        return etag or now.etag

    def _write(self, **condition: str) -> str:
        self._count += 1
        body = json.dumps({**self._said, "renewed": self._count}).encode()
        reply = self._client.call("put_object", self._object, Body=body, ContentType="application/json", **condition)
        return str(reply["ETag"])

    def _keep(self) -> None:
        wait = self._renew_after
        while not self._end.wait(wait):
            wait = self._renew_after
            try:
                self.renew()
            except OSError:
                wait = min(_AGAIN, wait)
            if self._lost is not None:
                return

    def renew(self) -> None:
        """Write the lease again.

        Raises:
            OSError: the store did not take it.
        """
        try:
            self._etag = self._write(IfMatch=self._etag)
        except (FileExistsError, FileNotFoundError):
            now = holder_of(self._client, self._place)
            if now is not None and now.said.get("token") == self._token:
                self._etag = now.etag  # our own write, whose reply was lost
            else:
                self._lost = LogBusyError(f"s3://{self._name}") if now is None else now.refusal(self._name)
