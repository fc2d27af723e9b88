"""What holds for every test of the repository: both back-ends, no network, no settings of the person who runs them."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from proctor_testkit import loopback_only

ROOT = Path(__file__).parent
PEER_PYTHON = "PROCTOR_PEER_PYTHON"
# Tests that need a real peer, or built wheels, have a session of their own (`peers`, `installed`) that sets a variable:
# so a skip never hides that one of them is missing.
NEEDS = {"tests/interchange": PEER_PYTHON, "tests/peer_scoring": PEER_PYTHON, "tests/wheels": "PROCTOR_WHEELS"}

# Seconds that a test has to end after pytest-timeout raised in it, before the whole run is ended.
GRACE = 60
terminal = pytest.StashKey[int]()

# Two cores that eight processes share say nothing about a property, and CI must fail on the same example twice.
settings.register_profile("proctor", deadline=None, derandomize=os.environ.get("CI") == "true")
# What shows that a property holds on another Python, too; the complete pass looks for the examples that break it.
settings.register_profile("few", settings.get_profile("proctor"), max_examples=10)
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
            ours = name.startswith("PROCTOR_") and name not in NEEDS.values()
            if ours or name.endswith(("_API_KEY", "_BASE_URL")):
                patch.delenv(name)
        yield


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    needed = next((name for folder, name in NEEDS.items() if collection_path == ROOT / folder), None)
    return True if needed is not None and not os.environ.get(needed) else None


def pytest_configure(config: pytest.Config) -> None:
    config.stash[terminal] = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)  # nothing is captured yet


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[terminal])


def _time_limit(item: pytest.Item) -> float:
    """Seconds that a test may take, as pytest-timeout has it; 0 is no limit."""
    config, own = item.config, item.get_closest_marker("timeout")
    given = config.getoption("timeout", None)
    if given is None and config.pluginmanager.hasplugin("timeout"):
        given = own.args[0] if own is not None and own.args else config.getini("timeout")
    return 0 if config.getoption("usepdb") or config.getoption("trace") else float(given or 0)


def _tell(item: pytest.Item) -> None:
    """What the summary would have said, and the test's name: stacks do not have it where a coroutine waits."""
    reporter = item.config.pluginmanager.get_plugin("terminalreporter")
    failed = [report.nodeid for report in reporter.stats.get("failed", ())] if reporter else []
    lines = [*(f"FAILED {name}" for name in failed), f"FAILED {item.nodeid}: it hangs, so the run ends here"]
    os.write(item.config.stash[terminal], "\n".join(["", *lines, ""]).encode())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test that hangs ends, and says where.

    pytest-timeout's signal is an exception in the main thread. It unwinds a test that waits for a child or a lock, and
    the run goes on; but it does not get a test out of trio's or uvloop's loop, out of C code or out of a ``finally``
    that waits. So a little later the stacks of all threads are printed and the run ends.
    """
    limit = _time_limit(item)
    if not limit:
        return (yield)
    faulthandler.dump_traceback_later(limit + GRACE, exit=True, file=item.config.stash[terminal])
    teller = threading.Timer(limit + GRACE * 0.9, _tell, [item])
    teller.daemon = True
    teller.start()
    try:
        return (yield)
    finally:
        teller.cancel()
        teller.join()  # what was cancelled lives for an instant more, and a test of threads saw it as a leak
        faulthandler.cancel_dump_traceback_later()


def pytest_report_header() -> str:
    peer = os.environ.get(PEER_PYTHON) or "none, so the tests that need one are left to `nox -s peers`"
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
