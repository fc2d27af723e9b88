"""A log while it is written: each commit is an object, and the whole grows beside it as a multipart upload."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from proctor.contracts import LogSink
from proctor_log_s3._client import Client, Place
from proctor_log_s3._lease import Lease
from proctor_log_s3._segments import Segment, Segments, folder_of, list_objects, part_keys
from proctor_log_s3._upload import Upload

__all__ = ["S3Sink", "delete_all"]

_SHARE = 16  # the whole directory is sent again once so many times its size has been committed since the last time
_AT_A_TIME = 1000  # objects that one request deletes


class S3Sink(LogSink):
    """The writer of one log.

    A byte is sent twice: in its segment, where it is safe at once, and in the multipart upload, whose parts nobody can
    read before the end. The upload goes along with the run, so nothing is kept here but the part that is not full yet.
    """

    def __init__(self, client: Client, place: Place, empty: str, lease: Lease, part: int) -> None:
        self._client, self._place, self._empty, self._lease, self._part = client, place, empty, lease, part
        self._upload = Upload(client, place, part)
        self._directory = b""
        self._number = 0
        self._since_whole = 0
        self._doubtful: str | None = None  # the key of a commit that failed, and may have come to pass
        self._open = True
        self._failed = False
        self.replaced = False
        """Somebody in this process has written the log as a whole meanwhile (the end of a ``.json`` log)."""

    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        self._lease.check()
        if not segment and self._number and directory == self._directory:
            return
        kept = self._kept(segment, directory)
        name = Segment.name(self._number + 1, len(segment), kept)
        key = folder_of(self._place[1]) + name
        self._failed = True
        if self._doubtful is not None and self._doubtful != key:
            self._client.call("delete_object", (self._place[0], self._doubtful))
        self._doubtful = key
        self._client.call("put_object", (self._place[0], key), Body=segment + directory[kept:])
        self._doubtful = None
        self._failed = False
        self._number += 1
        self._since_whole = self._since_whole + len(segment) if kept else 0
        self._directory = bytes(directory)
        self._upload.add(segment)
        with suppress(OSError):  # the segment is safe; the upload is tried again with the next one
            self._upload.send()

    def _kept(self, segment: bytes, directory: bytes | bytearray) -> int:
        if self._since_whole + len(segment) >= _SHARE * len(directory):
            return 0  # what readers put together from many segments they get in one again
        return _common(self._directory, directory)

    def close(self) -> None:
        """Make one object of the log, and remove the segments; after a commit that failed they stay as they are."""
        if not self._open:
            return
        if self._failed:
            self.abandon()
            return
        if not self.replaced and self._number:
            self._lease.check()
            self._finish()
        self._upload.abort()
        self._open = False
        if self._number:
            with suppress(OSError):  # nobody looks at them any more
                delete_all(self._client, self._place[0], part_keys(self._client, self._place))
        self._lease.close()

    def abandon(self) -> None:
        """Leave the log as it is: its segments can be read, and recovered."""
        if self._open:
            self._open = False
            self._lease.forget()

    def _finish(self) -> None:
        try:
            self._upload.send()
            self._upload.finish(self._directory, {"IfMatch": self._empty})
        except FileNotFoundError:  # the parts were removed under our hands: the segments have it all
            self._upload = Upload(self._client, self._place, self._part)
            for chunk in self._chunks():
                self._upload.add(chunk)
                self._upload.send()
            self._upload.finish(condition={"IfMatch": self._empty})

    def _chunks(self) -> Iterator[bytes]:
        found = list_objects(self._client, (self._place[0], folder_of(self._place[1])))
        whole = Segments(self._client, self._place[0], found)
        for start in range(0, whole.size, self._part):
            yield whole.read(start, start + self._part)


def delete_all(client: Client, bucket: str, keys: list[str]) -> None:
    """Remove objects, a thousand with each request."""
    for start in range(0, len(keys), _AT_A_TIME):
        some: list[dict[str, Any]] = [{"Key": key} for key in keys[start : start + _AT_A_TIME]]
        client.call("delete_objects", (bucket, ""), Delete={"Objects": some, "Quiet": True})


def _common(old: bytes, new: bytes | bytearray) -> int:
    """How many bytes at the beginning are the same."""
    low, high = 0, min(len(old), len(new))
    first, second = memoryview(old), memoryview(new)
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
