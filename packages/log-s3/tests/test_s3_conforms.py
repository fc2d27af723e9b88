"""The store passes the suite that all log stores run."""

from __future__ import annotations

import pytest

from proctor.contracts import LogStore
from proctor_log_s3._store import S3Store
from proctor_testkit import FaultProxy, LogStoreSuite


class TestS3Store(LogStoreSuite):
    many = 2_000  # the server of the tests takes milliseconds for each

    def fill(self, store: LogStore, names: list[str]) -> None:
        assert isinstance(store, S3Store)
        for name in names:  # one request each; a store's own way of writing takes several
            bucket, _, key = name.partition("/")
            store._client.call("put_object", (bucket, key), Body=b"x")

    @pytest.fixture
    def store(self, proxy: FaultProxy) -> LogStore:
        return S3Store()

    @pytest.fixture
    def name(self, bucket: str) -> str:
        return f"{bucket}/logs/a.eval"
