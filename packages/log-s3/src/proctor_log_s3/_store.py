"""Logs in buckets: what `LogStore` promises, on an object store that can't append."""

from __future__ import annotations

import builtins
import errno
import os
import secrets
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar

from proctor.contracts import LogBusyError, LogLease, LogSink, LogStore, Stat, UsageError
from proctor_log_s3._client import Client, Place
from proctor_log_s3._errors import EmptyRangeError
from proctor_log_s3._lease import DEAD, RENEW, Lease, holder_of, lease_of
from proctor_log_s3._orphans import abort_orphans
from proctor_log_s3._segments import Segments, folder_of, is_part, list_objects, part_keys
from proctor_log_s3._sink import S3Sink, delete_all
from proctor_log_s3._upload import PART, Upload

__all__ = ["S3Store", "shared_store"]

_SETTINGS = ("AWS_", "PROCTOR_S3_")


def shared_store() -> S3Store:
    """The store of this process: a client takes a while to make. Another one when the environment has changed."""
    return _store(tuple(sorted(item for item in os.environ.items() if item[0].startswith(_SETTINGS))))


@lru_cache(maxsize=4)
def _store(settings: tuple[tuple[str, str], ...]) -> S3Store:
    return S3Store()


class S3Store(LogStore):
    """Logs in S3 and in servers that speak its protocol; a name is ``bucket/key``.

    A log that is being written is an empty object at its key, segments under ``<key>.parts/`` and a lease at
    ``<key>.lease``; a finished one is one object. So an empty object stands for its segments.

    Args:
        renew: seconds between writes of a lease.
        dead: seconds without one after which its writer counts as dead, by the server's clock.
        part: bytes of the parts of a multipart upload.
    """

    local: ClassVar[bool] = False

    def __init__(self, *, renew: float = RENEW, dead: float = DEAD, part: int = PART) -> None:
        self._client = Client()
        self._renew, self._dead, self._part = renew, dead, part
        self._lock = threading.Lock()
        self._running: dict[Place, Segments] = {}  # what readers of running logs look at
        self._sinks: weakref.WeakValueDictionary[Place, S3Sink] = weakref.WeakValueDictionary()

    def check(self, folder: str, *, dry: bool = False) -> None:
        """Write and remove a small object, and what dead runs have left unseen; with ``dry``, list one."""
        try:
            bucket, prefix = _place(folder.rstrip("/") + "/")
            if dry:
                self._client.call("list_objects_v2", (bucket, ""), Prefix=prefix, MaxKeys=1)
            else:
                self._probe((bucket, f"{prefix}.proctor-{secrets.token_hex(8)}"))
                with suppress(OSError):  # a permission that is not needed otherwise
                    abort_orphans(self._client, (bucket, prefix), self._dead)
        except OSError as error:
            raise UsageError(
                f"no log can be written to s3://{folder}: {error.strerror}. "
                "--log-dir or PROCTOR_LOG_DIR names another place"
            ) from error
        if ahead := round(self._client.clock.ahead.total_seconds()):
            warnings.warn(
                f"the clock of this machine is {abs(ahead)} s {'behind' if ahead > 0 else 'ahead of'} the object "
                "store's: requests are signed by the store's time, but times in logs are wrong until you set it",
                stacklevel=3,
            )

    def _probe(self, place: Place) -> None:
        with suppress(FileExistsError):  # the name is random, so it is our own, whose reply was lost on its way
            self._client.call("put_object", place, Body=b"", IfNoneMatch="*")
        try:
            self._client.call("put_object", place, Body=b"", IfNoneMatch="*")
            warnings.warn(
                f"the object store of {place[0]!r} ignores conditional writes: two processes that begin the same "
                "resume or edit in the same moment may both go on",
                stacklevel=4,
            )
        except FileExistsError:
            pass
        self._client.call("delete_object", place)

    def create(self, name: str) -> LogSink:
        """An empty object that nobody else has made, and a lease."""
        place = _place(name)
        if not place[1] or place[1].endswith("/"):
            raise IsADirectoryError(errno.EISDIR, "it names a folder, not a log", f"s3://{name}")
        empty = self._claim(place)
        try:
            # Of a log that was deleted by hand, or of a deletion that broke off.
            delete_all(self._client, place[0], part_keys(self._client, place))
            lease = Lease(self._client, place, renew=self._renew, dead=self._dead)
        except BaseException as error:
            with suppress(OSError):  # nothing is in it, and nobody writes to it
                self._client.call("delete_object", place)
            if isinstance(error, LogBusyError):
                raise FileExistsError(errno.EEXIST, str(error), f"s3://{name}") from error
            raise
        sink = S3Sink(self._client, place, empty, lease, self._part)
        with self._lock:
            self._running.pop(place, None)
            self._sinks[place] = sink
        return sink

    def _claim(self, place: Place) -> str:
        try:
            self._client.call("head_object", place)  # for servers that ignore the condition below
        except FileNotFoundError:
            return Upload(self._client, place).finish(condition={"IfNoneMatch": "*"})
        raise FileExistsError(errno.EEXIST, "there is a log of that name", f"s3://{'/'.join(place)}")

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes ``[start, end)``, with one ranged request; from the segments while the log is not finished."""
        if end is not None and end <= start:
            return b""
        place = _place(name)
        known = self._running.get(place)
        if known is not None and end is not None and end <= known.size:
            try:
                return known.read(start, end)
            except FileNotFoundError:  # finished since
                self._forget(place)
        bounds = {} if start == 0 and end is None else {"Range": f"bytes={start}-{'' if end is None else end - 1}"}
        for last in (False, False, True):
            with suppress(EmptyRangeError):
                if data := bytes(self._client.call("get_object", place, **bounds)["Body"]):
                    return data
            head, running = self._look(place)
            if running is None:
                if start >= head["ContentLength"]:
                    return b""
                continue  # finished since it was asked for
            try:
                return running.read(start, end)
            except FileNotFoundError:  # finished since they were listed
                if last:
                    raise
        raise OSError(errno.EAGAIN, "the log changes too fast to be read; try again", f"s3://{name}")

    def _look(self, place: Place) -> tuple[dict[str, Any], Segments | None]:
        """What the store says of the object, and the segments of a log that is not finished.

        They are removed only when the object is there: if it is still empty after they were listed, all were listed.
        """
        head = self._client.call("head_object", place)
        while head["ContentLength"] == 0:
            running = Segments(self._client, place[0], list_objects(self._client, _folder(place)))
            head = self._client.call("head_object", place)
            if head["ContentLength"] == 0:
                with self._lock:
                    self._running[place] = running
                return head, running
        self._forget(place)
        return head, None

    def stat(self, name: str) -> Stat:
        """Size, etag and time of change; those of all segments together while the log is not finished."""
        place = _place(name)
        head, running = self._look(place)
        if running is not None and running.size:
            return Stat(running.size, running.etag, running.mtime)
        return Stat(head["ContentLength"], head["ETag"], head["LastModified"].timestamp())

    def list(self, prefix: str, *, recursive: bool = True) -> Iterator[tuple[str, Stat]]:
        """The logs below a folder, a thousand with each request; segments and leases are not listed."""
        bucket, folder = _place(prefix.rstrip("/") + "/")
        more: dict[str, str] = {} if recursive else {"Delimiter": "/"}
        logs: dict[str, Stat] = {}
        parts: dict[str, builtins.list[dict[str, Any]]] = {}
        for row in list_objects(self._client, (bucket, folder), **more):
            key = row["Key"]
            if (log := is_part(key)) is not None:
                parts.setdefault(log, []).append(row)
            elif not key.endswith((".lease", "/")):
                logs[key] = Stat(row["Size"], row["ETag"], row["LastModified"].timestamp())
        for key, stat in logs.items():
            if stat.size == 0:
                found = parts.get(key) if recursive else list_objects(self._client, (bucket, folder_of(key)))
                running = Segments(self._client, bucket, found or ())
                if running.size:
                    stat = Stat(running.size, running.etag, running.mtime)
                else:  # without a commit, or finished since it was listed
                    try:
                        stat = self.stat(f"{bucket}/{key}")
                    except FileNotFoundError:
                        continue
            yield f"{bucket}/{key}", stat

    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        """Upload the new content, and make it visible if the log has not changed meanwhile."""
        place = _place(name)
        upload = Upload(self._client, place, self._part)
        try:
            for chunk in chunks:
                upload.add(chunk)
                upload.send()
            upload.finish(condition=self._condition(name, if_match))
        except BaseException:
            upload.abort()
            raise
        with self._lock:
            sink = self._sinks.get(place)
        if sink is not None:
            sink.replaced = True
        delete_all(self._client, place[0], part_keys(self._client, place))
        return self.stat(name)

    def _condition(self, name: str, if_match: str | None) -> dict[str, str]:
        """What the object must be for the log to have an etag; compared here, too, for servers without conditions."""
        if if_match is None:
            return {}
        try:
            # In this order: an object that is newer than the state that matches must not pass for it.
            etag = self._client.call("head_object", _place(name))["ETag"]
            if self.stat(name).etag == if_match:
                return {"IfMatch": etag}
        except FileNotFoundError:
            pass
        raise FileExistsError(errno.EEXIST, "somebody else has changed the log; read it again", f"s3://{name}")

    def delete(self, name: str) -> None:
        """Remove the log with its segments, its lease, and uploads that were not finished."""
        place = bucket, key = _place(name)
        self._client.call("head_object", place)
        self._client.call("delete_object", place)
        self._forget(place)
        delete_all(self._client, bucket, [*part_keys(self._client, place), lease_of(key)])
        for upload in self._client.call("list_multipart_uploads", (bucket, ""), Prefix=key).get("Uploads", ()):
            if upload["Key"] == key:
                self._client.call("abort_multipart_upload", place, UploadId=upload["UploadId"])

    def live(self, name: str) -> bool:
        """Whether the lease of a log was written lately, by the server's clock."""
        found = holder_of(self._client, _place(name))
        return found is not None and found.age < self._dead

    def hold(self, name: str) -> LogLease:
        """Make the lease of a log, or take over one that is dead."""
        place = _place(name)
        self._client.call("head_object", place)
        return Lease(self._client, place, renew=self._renew, dead=self._dead)

    def _forget(self, place: Place) -> None:
        with self._lock:
            self._running.pop(place, None)


def _folder(place: Place) -> Place:
    return place[0], folder_of(place[1])


def _place(name: str) -> Place:
    bucket, _, key = name.partition("/")
    if not bucket:
        raise UsageError(f"s3://{name} names no bucket: write s3://BUCKET/FOLDER.")
    return bucket, key
