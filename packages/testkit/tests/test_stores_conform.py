"""The core's own log stores pass the suite that outsiders run."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor import plugins
from proctor.contracts import LogStore
from proctor_testkit import LogStoreSuite


def made(scheme: str) -> LogStore:
    store: LogStore = plugins.get("log_stores", scheme).factory()
    return store


class TestFileStore(LogStoreSuite):
    @pytest.fixture
    def store(self) -> LogStore:
        return made("file")

    @pytest.fixture
    def name(self, tmp_path: Path) -> str:
        return f"{tmp_path}/logs/a.eval"


class TestMemoryStore(LogStoreSuite):
    @pytest.fixture
    def store(self) -> LogStore:
        return made("memory")

    @pytest.fixture
    def name(self, tmp_path: Path) -> str:
        # All stores of a process share their logs; the folder's name is new in each test.
        return f"{tmp_path}/logs/a.eval"
