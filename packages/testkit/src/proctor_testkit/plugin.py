"""The pytest plugin of the test-kit: which checks apply to a component, and what became of them."""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from proctor_testkit._network import loopback_only
from proctor_testkit._suite import Check, Suite, check_of, problem_of, seconds_of
from proctor_testkit._watchdog import limit_of, open_terminal, watched

_results = pytest.StashKey[list[dict[str, str]]]()

NOT_APPLICABLE = "not applicable"
_ROW = "proctor_conformance"
"""The attribute of a report with the row of its check, and the name of what a worker leaves."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--proctor-report FILE``."""
    group = parser.getgroup("proctor")
    group.addoption("--proctor-report", metavar="FILE", help="write what became of each conformance check, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Start with no results; say what the marks of the suites mean."""
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.addinivalue_line("markers", "conformance: a check of a suite of the test-kit")
    config.stash[_results] = []
    config.pluginmanager.register(_Gathering(config))
    open_terminal(config)
    if (path := config.getoption("proctor_report")) and not _is_worker(config):
        _refuse_bad_path(Path(path))


class _Gathering:
    """Gathers what became of the checks in the process that sums up, wherever they ran."""

    def __init__(self, config: pytest.Config) -> None:
        self.rows = config.stash[_results]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (row := getattr(report, _ROW, None)) is not None:
            self.rows.append(row)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of pytest-xdist left out: all workers collect the same."""
        known = {row["test"] for row in self.rows}
        left: list[dict[str, str]] = getattr(node, "workeroutput", {}).get(_ROW, [])
        self.rows += [row for row in left if row["test"] not in known]


def _is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one, by pytest-xdist."""
    return hasattr(config, "workerinput")


def _refuse_bad_path(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(f"{path.parent} cannot be written to")
    except OSError as error:
        raise pytest.UsageError(f"--proctor-report: nothing can be written to {path}: {error}") from None


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> None:
    """A suite that lacks something, or was weakened, is one error with its reason, instead of one for each check."""
    suite = getattr(collector, "obj", None) if isinstance(collector, pytest.Class) else None
    if isinstance(suite, type) and issubclass(suite, Suite) and (problem := problem_of(suite)) is not None:
        collector.collect = functools.partial(_refuse, problem)  # type: ignore[method-assign]  # of this one only


def _refuse(problem: str) -> NoReturn:
    raise pytest.Collector.CollectError(problem)


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
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A check that hangs ends, with its name; see ``watched``."""
    found, seconds = _check(item), seconds_of(getattr(item, "function", None))
    limit = None if found is None or seconds is None else limit_of(item, seconds)
    if found is None or limit is None:
        return (yield)

    def write() -> None:
        item.config.stash[_results].append(_row(item, *found, "failed", ""))
        _write_report(item.config)

    with watched(item, found[1].id, limit, write):
        return (yield)


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
        setattr(report, _ROW, row)  # a report goes from a worker of pytest-xdist to the process that sums up
        if report.outcome == "failed":
            said = f"{one.id} ({one.level}{f', with {one.needs}' if one.needs else ''}) of {suite.__name__}"
            report.sections.append(("conformance check", said))
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
    """Write the report that was asked for; a worker of pytest-xdist hands over what it left out."""
    config = session.config
    if _is_worker(config):
        rows = config.stash[_results]
        config.workeroutput[_ROW] = [row for row in rows if row["outcome"] == NOT_APPLICABLE]  # type: ignore[attr-defined]
    else:
        _write_report(config)


def _write_report(config: pytest.Config) -> None:
    path = config.getoption("proctor_report")
    if path and not _is_worker(config):
        Path(path).write_text(json.dumps(config.stash[_results], indent=1), encoding="utf-8")
