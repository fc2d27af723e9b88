"""The contract of log stores, as the test-kit has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from proctor.contracts import LogStore
from proctor_testkit import LogStoreSuite

from proctor_log_acme._store import AcmeStore


class TestAcmeStore(LogStoreSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LogStore:
        return AcmeStore(str(tmp_path))
