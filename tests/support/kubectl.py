"""The machine's own ``kubectl`` for tests: what a fake Kubernetes is checked by."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Kubectl", "kubectl_path"]

OLDEST = (1, 31)
"""The first that runs commands over WebSocket unless told otherwise; older ones speak SPDY."""
_WAIT = 100  # seconds


@dataclass(frozen=True)
class Kubectl:
    """kubectl with one cluster, and with a home of its own for what it keeps."""

    path: str
    kubeconfig: Path
    home: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """What it takes to reach the cluster."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home)}

    def run(self, *arguments: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Any command, with what it says and its exit code."""
        return subprocess.run(
            [self.path, *arguments], input=data, env=self.environment, capture_output=True, timeout=_WAIT
        )

    def said(self, *arguments: str, data: bytes | None = None) -> str:
        """What a command says that succeeds.

        Raises:
            AssertionError: if it fails; with what it said.
        """
        done = self.run(*arguments, data=data)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def json(self, *arguments: str) -> Any:
        """What ``get`` and others say with ``-o json``."""
        return json.loads(self.said(*arguments, "-o", "json"))


@pytest.fixture(scope="session")
def kubectl_path() -> str:
    """Where it is; without one that is new enough the test is skipped, and fails in CI."""
    path, problem = shutil.which("kubectl"), ""
    if path is None:
        problem = "there is no `kubectl` command"
    else:
        asked = [path, "version", "--client", "-o", "json"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=_WAIT)
        about = json.loads(done.stdout)["clientVersion"] if done.returncode == 0 else {"major": "0", "minor": "0"}
        if (int(about["major"]), int(about["minor"].rstrip("+"))) < OLDEST:
            problem = f"kubectl is {about['major']}.{about['minor']}, and {OLDEST[0]}.{OLDEST[1]} is needed"
    if problem:
        if os.environ.get("CI") == "true":
            pytest.fail(problem)
        pytest.skip(problem)
    assert path is not None
    return path
