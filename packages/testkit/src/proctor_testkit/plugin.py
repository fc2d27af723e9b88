"""The pytest plugin of the test-kit: which checks apply to a component, and what became of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from proctor_testkit._network import loopback_only
from proctor_testkit._suite import Check, Suite, check_of

_results = pytest.StashKey[list[dict[str, str]]]()

NOT_APPLICABLE = "not applicable"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--proctor-report FILE``."""
    group = parser.getgroup("proctor")
    group.addoption("--proctor-report", metavar="FILE", help="write what became of each conformance check, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Start with no results; say what the marks of the suites mean."""
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.addinivalue_line("markers", "conformance: a check of a suite of the test-kit")
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
        item.add_marker(pytest.mark.conformance)
        suite, one = found
        backend = item.callspec.params.get("anyio_backend") if hasattr(item, "callspec") else None
        if reason := _not_applicable(suite, one, backend):
            config.stash[_results].append(_row(item, suite, one, NOT_APPLICABLE, reason))
            left.append(item)
            continue
        if reason := suite.expected_failures.get(one.id, ""):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
        kept.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _not_applicable(suite: type[Suite], one: Check, backend: object) -> str:
    missing = sorted(set((one.needs or "").split()) - suite.capabilities)
    if missing:
        return f"without the capability {' and '.join(missing)}"
    return f"does not run on {backend}" if backend and backend not in suite.backends else ""


def _check(item: pytest.Item) -> tuple[type[Suite], Check] | None:
    suite = getattr(item, "cls", None)
    found = check_of(getattr(item, "function", None))
    if found is None or not isinstance(suite, type) or not issubclass(suite, Suite):
        return None
    return suite, found


def _row(item: pytest.Item, suite: type[Suite], one: Check, outcome: str, reason: str) -> dict[str, str]:
    return {
        "kind": suite.kind,
        "name": suite.component(),
        "component": f"{suite.__module__}.{suite.__name__}",
        "check": one.id,
        "level": one.level,
        "needs": one.needs or "",
        "test": item.nodeid,
        "outcome": outcome,
        "reason": reason,
    }


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
    # What went wrong before or after a check is part of it: a component that can't be made, or not be taken down.
    if found is not None and (call.when == "call" or report.outcome != "passed"):
        suite, one = found
        expected = hasattr(report, "wasxfail")
        reason = suite.expected_failures.get(one.id, "") if expected else _skipped_for(report)
        row = _row(item, suite, one, "xfailed" if expected else report.outcome, reason)
        item.config.stash[_results].append(row)
    return report


def _skipped_for(report: pytest.TestReport) -> str:
    return str(report.longrepr[2]) if report.outcome == "skipped" and isinstance(report.longrepr, tuple) else ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in a line a component what became of its checks; and what the core relies on and it lacks."""
    rows = config.stash[_results]
    ran = {row["component"]: (row["kind"], row["name"]) for row in rows if row["outcome"] != NOT_APPLICABLE}
    if ran:
        terminalreporter.section("conformance")
    for component, (kind, name) in ran.items():
        own = [row for row in rows if row["component"] == component]
        counts = Counter(row["outcome"] for row in own)
        said = ", ".join(f"{counts[outcome]} {outcome}" for outcome in sorted(counts, key=lambda key: -counts[key]))
        terminalreporter.write_line(f"{kind} {name}: {said}")
        lacking = {row["check"]: row["reason"] for row in own if row["outcome"] == "xfailed" and row["level"] == "must"}
        for check, reason in lacking.items():
            terminalreporter.write_line(f"  does not conform: {check} is a must ({reason})")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the report that was asked for."""
    path = session.config.getoption("proctor_report")
    if path:
        Path(path).write_text(json.dumps(session.config.stash[_results], indent=1), encoding="utf-8")
