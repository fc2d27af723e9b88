"""The store passes the suite that all log stores run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from proctor.contracts import LogStore
from proctor_log_s3._store import S3Store
from proctor_testkit import FaultProxy, LogStoreSuite


class TestS3Store(LogStoreSuite):
    # Not `torn`: an object is there whole or not at all, so no commit is ever there in part.
    capabilities = frozenset({"leases", "processes", "dying_leases", "failing"})

    def fill(self, store: LogStore, names: list[str]) -> None:
        # Into the server's own memory: 10,000 requests take it a minute, and say nothing about listing.
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for name in names:
            bucket, _, key = name.partition("/")
            backend.put_object(bucket, key, b"x")

    @pytest.fixture
    def store(self, proxy: FaultProxy) -> LogStore:
        return S3Store()

    @pytest.fixture
    def name(self, bucket: str) -> str:
        return f"{bucket}/logs/a.eval"

    @pytest.fixture
    def opener(self) -> Callable[[], LogStore]:
        return S3Store  # the address of the proxy is in the environment of other processes, too

    @pytest.fixture
    def lapse(self, proxy: FaultProxy) -> Callable[[], None]:
        return partial(proxy.skew, 130.0)

    @pytest.fixture
    def failing(self, proxy: FaultProxy) -> Callable[[LogStore], AbstractContextManager[None]]:
        @contextmanager
        def failing(store: LogStore) -> Iterator[None]:
            proxy.fail(507, "XMinioStorageFull", times=None, match="^PUT")  # what MinIO says
            yield
            proxy.clear()

        return failing
