"""Multipart uploads of runs that were killed: no listing shows them, and their parts cost storage."""

from __future__ import annotations

from contextlib import suppress
from email.utils import parsedate_to_datetime

from proctor_log_s3._client import Client, Place
from proctor_log_s3._lease import holder_of

__all__ = ["abort_orphans"]

_OLD = 86_400.0  # seconds after which an upload that nobody has a lease for is nobody's: an edit that takes that long?


def abort_orphans(client: Client, place: Place, dead: float) -> None:
    """Throw away uploads of logs below a folder whose writer is dead.

    That is so when their lease has run out, or when there is none and they are a day old: a log that is written as a
    whole has no lease. A writer that was only out of touch makes its upload again, from its segments.

    Args:
        client: for the requests.
        place: bucket and folder.
        dead: seconds without a sign after which the holder of a lease counts as dead.

    Raises:
        OSError: they can't be listed.
    """
    bucket, prefix = place
    reply = client.call("list_multipart_uploads", (bucket, ""), Prefix=prefix)
    now = reply["ResponseMetadata"]["HTTPHeaders"].get("date")
    for upload in reply.get("Uploads", ()):
        log = bucket, upload["Key"]
        holder = holder_of(client, log)
        if holder is None:
            begun = upload.get("Initiated")
            if now is None or begun is None or (parsedate_to_datetime(now) - begun).total_seconds() < _OLD:
                continue
        elif holder.age < dead:
            continue
        with suppress(OSError):  # somebody else was faster
            client.call("abort_multipart_upload", log, UploadId=upload["UploadId"])
