"""The core's own sandbox passes the suite that outsiders run."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor_testkit import SandboxSuite


class TestLocal(SandboxSuite):
    provider = "local"
    patience = 0.5
    # What left its process group is found by its environment, which Linux tells.
    capabilities = frozenset({"reap", "list"}) | ({"sessions"} if Path("/proc/self/environ").exists() else set())

    @pytest.fixture(autouse=True)
    def _its_own_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What other runs on this machine left behind is not this test's to take away."""
        monkeypatch.setenv("TMPDIR", str(tmp_path))  # for the process that is killed
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
