"""What every sandbox must do, by containers of a real engine."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from proctor_testkit import SandboxSuite

IMAGE = "proctor-busybox:latest"


@pytest.mark.usefixtures("engine_address")
class TestDocker(SandboxSuite):
    provider = "docker"
    config = IMAGE
    services: ClassVar[Any] = {"services": {key: {"image": IMAGE, "command": "sleep 600"} for key in ("a", "b")}}
    capabilities = frozenset({"users", "reap", "list", "vanish", "sessions", "named"})
