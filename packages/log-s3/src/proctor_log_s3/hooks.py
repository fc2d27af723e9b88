"""What this package offers: logs in object stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.contracts import LogStoreProvider
from proctor.hookspecs import hookimpl

if TYPE_CHECKING:
    from proctor.contracts import LogStore


def _make() -> LogStore:
    from proctor_log_s3._store import shared_store

    return shared_store()


@hookimpl
def proctor_log_stores() -> Sequence[LogStoreProvider]:
    """One store, for all buckets that the credentials of the environment reach."""
    return [
        LogStoreProvider(scheme="s3", factory=_make, summary="Amazon S3 and compatible servers: s3://bucket/prefix")
    ]
