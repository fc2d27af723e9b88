"""A real Docker engine for tests: the one that DOCKER_HOST names, or the one of ``tests/services/docker.sh``."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["IMAGE", "DockerEngine", "docker_engine"]

SCRIPT = Path(__file__).parents[1] / "services" / "docker.sh"
IMAGE = "proctor-busybox:latest"


@dataclass(frozen=True)
class DockerEngine:
    """The client's environment: what it takes to reach the engine."""

    environment: Mapping[str, str]

    def run(self, *arguments: str) -> str:
        """``docker run --rm ARGUMENTS`` without a network; its output."""
        return self.docker("run", "--rm", "--network", "none", *arguments)

    def docker(self, *arguments: str) -> str:
        """Any command of the client; its output.

        Raises:
            AssertionError: the command failed; with what it said.
        """
        done = subprocess.run(["docker", *arguments], env=self.environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def docker_engine() -> DockerEngine:
    """The engine, with the image ``IMAGE``; without one the test is skipped, and fails in CI."""
    host, problem = _host()
    environment = {**os.environ, "DOCKER_HOST": host}
    if not problem:
        ask = ["docker", "image", "inspect", IMAGE]
        done = subprocess.run(ask, env=environment, capture_output=True, text=True, timeout=60)
        problem = done.stderr.strip() if done.returncode else ""
    if problem:
        reason = f"no Docker engine for tests: {problem}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return DockerEngine(environment)


def _host() -> tuple[str, str]:
    """The address, and else what is missing."""
    if shutil.which("docker") is None:
        return "", f"there is no `docker` command; {SCRIPT} start installs it"
    if host := os.environ.get("DOCKER_HOST"):
        return host, ""
    done = subprocess.run([str(SCRIPT), "status"], capture_output=True, text=True, timeout=60)
    return done.stdout.strip(), done.stderr.strip()
