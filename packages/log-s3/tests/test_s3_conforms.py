"""The store passes the suite that all log stores run."""

from __future__ import annotations

import pytest

from proctor.contracts import LogStore
from proctor_log_s3._store import S3Store
from proctor_testkit import FaultProxy, LogStoreSuite


class TestS3Store(LogStoreSuite):
    many = 2_000  # the server of the tests takes milliseconds for each

    @pytest.fixture
    def store(self, proxy: FaultProxy) -> LogStore:
        return S3Store()

    @pytest.fixture
    def name(self, bucket: str) -> str:
        return f"{bucket}/logs/a.eval"
