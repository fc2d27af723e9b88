"""What every sandbox must do, by containers of a real engine."""

from __future__ import annotations

import pytest

from proctor_testkit import SandboxSuite


@pytest.mark.usefixtures("engine_address")
class TestDocker(SandboxSuite):
    provider = "docker"
    config = "proctor-busybox:latest"
    capabilities = frozenset({"users", "reap"})
