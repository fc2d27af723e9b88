"""What holds for every test of the repository: both back-ends, no network, no settings of the person who runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from proctor_testkit import loopback_only

ROOT = Path(__file__).parent
PEER_PYTHON = "PROCTOR_PEER_PYTHON"
# Tests that need a real peer have a session of their own (`nox -s peers`), so that a skip never hides a missing peer.
PEER_TESTS = ("tests/interchange", "tests/peer_scoring")

# Two cores that eight processes share say nothing about a property, and CI must fail on the same example twice.
settings.register_profile("proctor", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("proctor")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Every test marked ``anyio`` runs once on each back-end."""
    return str(request.param)


@pytest.fixture(scope="session", autouse=True)
def _this_machine_only() -> Iterator[None]:
    with loopback_only():
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_personal_settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            ours = name.startswith("PROCTOR_") and name != PEER_PYTHON
            if ours or name.endswith(("_API_KEY", "_BASE_URL")):
                patch.delenv(name)
        yield


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if os.environ.get(PEER_PYTHON):
        return None
    return True if any(collection_path == ROOT / folder for folder in PEER_TESTS) else None


def pytest_report_header() -> str:
    peer = os.environ.get(PEER_PYTHON) or "none, so " + " and ".join(PEER_TESTS) + " are left to `nox -s peers`"
    return f"peer: {peer}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skip is a missing part, and a missing part is an error."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or reporter is None or session.exitstatus != pytest.ExitCode.OK:
        return
    if skipped := reporter.stats.get("skipped"):
        reporter.write_line(f"\nCI=true, so all parts must be there, but {len(skipped)} tests were skipped", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
