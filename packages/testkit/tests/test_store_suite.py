"""Each fault of a log store is found by its own check."""

from __future__ import annotations

import json

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow  # each test runs pytest

FAULTY = """
import time
import pytest
from proctor.contracts import LogSink, LogStore, Stat
from proctor_testkit import LogStoreSuite

FAULT = "{fault}"

class Sink(LogSink):
    def __init__(self, files, name):
        self.files, self.name, self.body, self.closed = files, name, b"", False

    def commit(self, segment, directory):
        self.body += segment
        content = self.body + bytes(directory)
        old = self.files[self.name]
        if FAULT == "store.empty_commit" and len(content) < len(old[0]) and not segment:
            content += old[0][len(content):]
        self.files[self.name] = (content, old[1] + (FAULT != "store.stat"))

    def close(self):
        if self.closed and FAULT == "store.close":
            raise ValueError("closed twice")
        self.closed = True

class Store(LogStore):
    def __init__(self):
        self.files = {{}}

    def create(self, name):
        if name in self.files and FAULT != "store.create":
            raise FileExistsError(name)
        self.files.setdefault(name, (b"", 0))
        return Sink(self.files, name)

    def _get(self, name):
        if name not in self.files:
            raise KeyError(name) if FAULT == "store.missing" else FileNotFoundError(name)
        return self.files[name]

    def read(self, name, start=0, end=None):
        end = end + 1 if end is not None and FAULT == "store.read" else end
        return self._get(name)[0][start:end]

    def stat(self, name):
        content, version = self._get(name)
        return Stat(len(content), str(version), time.time())

    def list(self, prefix, *, recursive=True):
        for name in sorted(self.files):
            rest = name.removeprefix(prefix + "/")
            if rest != name and (recursive or "/" not in rest or FAULT == "store.list"):
                yield name, self.stat(name)

    def replace(self, name, chunks, if_match=None):
        if if_match is not None and self.stat(name).etag != if_match and FAULT != "store.replace_conflict":
            raise FileExistsError(name)
        version = self.files.get(name, (b"", 0))[1]
        content = b""
        for chunk in chunks:
            content += chunk
            if FAULT == "store.replace_fails":
                self.files[name] = (content, version + 1)
        self.files[name] = (content, version + 1)
        return self.stat(name)

    def delete(self, name):
        self._get(name)
        del self.files[name]

class TestFaulty(LogStoreSuite):
    @pytest.fixture
    def store(self):
        return Store()
"""

FAULTS = ("close", "create", "empty_commit", "list", "missing", "read", "replace_conflict", "replace_fails", "stat")


def failed(pytester: pytest.Pytester, fault: str) -> set[str]:
    pytester.makepyfile(FAULTY.format(fault=fault))
    pytester.runpytest_subprocess("--proctor-report", "report.json", "-p", "no:cacheprovider", timeout=120)
    rows = json.loads((pytester.path / "report.json").read_text())
    assert len(rows) > 15
    return {row["check"] for row in rows if row["outcome"] == "failed"}


@pytest.mark.parametrize("fault", [f"store.{name}" for name in FAULTS])
def test_a_faulty_store_fails_in_its_own_check(pytester: pytest.Pytester, fault: str) -> None:
    # A name that can be had twice is also had by two threads; one that is missing is also missing after its deletion.
    follows = {"store.create": {"store.create_race"}, "store.missing": {"store.delete"}}

    assert failed(pytester, fault) == {fault} | follows.get(fault, set())


def test_a_store_without_fault_passes(pytester: pytest.Pytester) -> None:
    assert failed(pytester, "none") == set()


def test_a_suite_without_a_store_says_what_it_needs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("from proctor_testkit import LogStoreSuite\n\nclass TestNothing(LogStoreSuite): pass\n")

    result = pytester.runpytest_subprocess(timeout=120)

    result.stdout.fnmatch_lines(["*TestNothing needs a fixture `store`*"])
