"""The core's own log stores pass the suite that outsiders run."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from proctor import plugins
from proctor.contracts import LogSink, LogStore
from proctor.log import FileStore
from proctor_testkit import LogStoreSuite


def made(scheme: str) -> LogStore:
    store: LogStore = plugins.get("log_stores", scheme).factory()
    return store


class TestFileStore(LogStoreSuite):
    capabilities = frozenset({"leases", "processes", "dying_leases", "torn", "failing"})

    @pytest.fixture
    def store(self) -> LogStore:
        return made("file")

    def fill(self, store: LogStore, names: list[str]) -> None:
        for name in names:  # 10,000 syncs of the disk say nothing about listing
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(b"x")

    @pytest.fixture
    def opener(self) -> Callable[[], LogStore]:
        return FileStore

    @pytest.fixture
    def torn(self) -> Callable[..., None]:
        def torn(store: LogStore, name: str, sink: LogSink, segment: bytes, directory: bytes, size: int) -> None:
            def dies(handle: int, buffers: list[bytes], offset: int) -> int:
                os.pwrite(handle, b"".join(buffers)[:size], offset)
                raise KeyboardInterrupt

            with pytest.MonkeyPatch.context() as patch, suppress(KeyboardInterrupt):
                patch.setattr(os, "pwritev", dies)
                sink.commit(segment, directory)
            sink.close()

        return torn

    @pytest.fixture
    def failing(self) -> Callable[[LogStore], AbstractContextManager[None]]:
        def full(handle: int, buffers: list[bytes], offset: int) -> int:
            os.pwrite(handle, b"".join(buffers)[:1000], offset)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        @contextmanager
        def failing(store: LogStore) -> Iterator[None]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "pwritev", full)
                yield

        return failing

    @pytest.fixture
    def name(self, tmp_path: Path) -> str:
        return f"{tmp_path}/logs/a.eval"


class TestMemoryStore(LogStoreSuite):
    capabilities = frozenset({"leases"})

    @pytest.fixture
    def store(self) -> LogStore:
        return made("memory")

    @pytest.fixture
    def name(self, tmp_path: Path) -> str:
        # All stores of a process share their logs; the folder's name is new in each test.
        return f"{tmp_path}/logs/a.eval"
