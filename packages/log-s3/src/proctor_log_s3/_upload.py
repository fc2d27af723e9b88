"""One object, written from front to back: whole when it is small, in parts otherwise, and visible at the end only."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress

from proctor_log_s3._client import Client, Place

__all__ = ["PART", "Upload"]

PART = 8 << 20  # bytes of the first thousand parts; 5 MiB is the least that S3 takes
_GROWTH = 1000  # parts after which they get larger: there are 10,000 at most, so an object may have 440 GB
_MARK = "proctor-write"  # metadata by which a writer knows its own object


class Upload:
    """What is added goes out in parts; ``finish`` makes the object of it.

    An upload that is neither finished nor aborted leaves parts that nobody sees; the next run in the same folder, or a
    lifecycle rule of the bucket, removes them.
    """

    def __init__(self, client: Client, place: Place, part: int = PART) -> None:
        self._client = client
        self._place = place
        self._part = part
        self._token = secrets.token_hex(8)
        self._waiting = bytearray()
        self._id: str | None = None
        self._etags: list[str] = []

    def add(self, data: bytes | bytearray) -> None:
        """Take the next bytes; sends nothing."""
        self._waiting += data

    def send(self) -> None:
        """Send what fills parts. When it raises, it may be called again."""
        while len(self._waiting) >= (size := self._part * (1 + len(self._etags) // _GROWTH)):
            self._etags.append(self._send(bytes(memoryview(self._waiting)[:size])))
            del self._waiting[:size]

    def finish(self, tail: bytes = b"", condition: Mapping[str, str] | None = None) -> str:
        """Send the rest and make the object, if the ``condition`` holds. May be called again when it raises.

        Args:
            tail: what ends the object.
            condition: ``IfMatch`` or ``IfNoneMatch``.

        Returns:
            The etag.

        Raises:
            FileExistsError: the condition does not hold.
            FileNotFoundError: what was sent is not there any more: somebody, or a lifecycle rule, has removed it.
            OSError: the store failed.
        """
        try:
            return self._finish(bytes(self._waiting) + tail, condition or {})
        except (FileExistsError, FileNotFoundError):
            # A reply that is lost on its way makes the SDK ask again, and then it is our own object that is there.
            with suppress(FileNotFoundError):
                made = self._client.call("head_object", self._place)
                if made.get("Metadata", {}).get(_MARK) == self._token:
                    return str(made["ETag"])
            raise

    def abort(self) -> None:
        """Throw away what was sent, as far as that can be done."""
        if self._id is not None:
            with suppress(OSError):
                self._client.call("abort_multipart_upload", self._place, UploadId=self._id)
            self._id = None

    def _finish(self, rest: bytes, condition: Mapping[str, str]) -> str:
        if self._id is None:
            mark = {_MARK: self._token}
            made = self._client.call("put_object", self._place, Body=rest, Metadata=mark, **condition)
            return str(made["ETag"])
        etags = [*self._etags, self._send(rest)] if rest else self._etags
        parts = [{"ETag": etag, "PartNumber": number} for number, etag in enumerate(etags, 1)]
        made = self._client.call(
            "complete_multipart_upload", self._place, UploadId=self._id, MultipartUpload={"Parts": parts}, **condition
        )
        return str(made["ETag"])

    def _send(self, data: bytes) -> str:
        """The etag of the next part."""
        if self._id is None:
            made = self._client.call("create_multipart_upload", self._place, Metadata={_MARK: self._token})
            self._id = str(made["UploadId"])
        number = len(self._etags) + 1
        sent = self._client.call("upload_part", self._place, UploadId=self._id, PartNumber=number, Body=data)
        return str(sent["ETag"])
