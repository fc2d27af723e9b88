"""The pytest plugin of the test-kit: which checks apply to a component, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from proctor_testkit._network import loopback_only
from proctor_testkit._suite import Check, Suite, check_of

_results = pytest.StashKey[list[dict[str, str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--proctor-report FILE``."""
    group = parser.getgroup("proctor")
    group.addoption("--proctor-report", metavar="FILE", help="write what became of each conformance check, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Start with no results; say what the marks of the suites mean."""
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.stash[_results] = []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the checks that say nothing about this component, and mark those that are expected to fail."""
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        found = _check(item)
        if found is None:
            kept.append(item)
            continue
        suite, one = found
        backend = item.callspec.params.get("anyio_backend") if hasattr(item, "callspec") else None
        if not suite.capabilities.issuperset((one.needs or "").split()) or (backend and backend not in suite.backends):
            left.append(item)
            continue
        if reason := suite.expected_failures.get(one.id):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
        kept.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _check(item: pytest.Item) -> tuple[type[Suite], Check] | None:
    suite = getattr(item, "cls", None)
    found = check_of(getattr(item, "function", None))
    if found is None or not isinstance(suite, type) or not issubclass(suite, Suite):
        return None
    return suite, found


@pytest.fixture(autouse=True)
def _proctor_suites_stay_here(request: pytest.FixtureRequest) -> Iterator[None]:
    """A conformance check talks to loopback only; other tests of the plugin do as they like."""
    if _check(request.node) is None:
        yield
        return
    with loopback_only():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the outcome of each check."""
    report = yield
    found = _check(item)
    if found is not None and (call.when == "call" or (call.when == "setup" and report.outcome != "passed")):
        suite, one = found
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        row = {"component": f"{suite.__module__}.{suite.__name__}", "check": one.id, "level": one.level}
        item.config.stash[_results].append(row | {"test": item.nodeid, "outcome": outcome})
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the report that was asked for."""
    path = session.config.getoption("proctor_report")
    if path:
        Path(path).write_text(json.dumps(session.config.stash[_results], indent=1), encoding="utf-8")
