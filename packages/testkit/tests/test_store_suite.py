"""Each check of log stores is proved by a store that is at fault in just that."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from proctor_testkit import LogStoreSuite
from proctor_testkit._suite import check_of

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow  # each test runs pytest

# Each store has one fault, which its class is named after. Where a fault would show in several checks, it is so narrow
# that it does not.
FAULTY = Path(__file__).parent / "faulty_stores.py"
CHECKS = {
    found.id: value
    for name in dir(LogStoreSuite)
    if (found := check_of(value := getattr(LogStoreSuite, name))) is not None
}
SLOW = {id for id, value in CHECKS.items() if any(mark.name == "slow" for mark in getattr(value, "pytestmark", ()))}


def failed(folder: Path, mark: str, stores: Iterable[str]) -> dict[str, set[str]]:
    """The checks of one kind that each store fails; one process for all of them."""
    (folder / "test_faulty.py").write_text(FAULTY.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--proctor-report", "report.json"]
    chosen = [f"test_faulty.py::Test_{store.replace('.', '__')}" for store in stores]
    done = subprocess.run([*command, "-m", mark, *chosen], cwd=folder, capture_output=True, text=True, timeout=500)
    assert done.returncode == 1, done.stdout + done.stderr
    found: dict[str, set[str]] = {}
    for row in json.loads((folder / "report.json").read_text()):
        if row["outcome"] != "not applicable":
            store = row["component"].rpartition(".Test_")[2].replace("__", ".")
            assert row["outcome"] in ("passed", "failed"), row
            found.setdefault(store, set()).update({row["check"]} if row["outcome"] == "failed" else set())
    return found


@pytest.mark.timeout(600)
def test_a_faulty_store_fails_in_its_own_check_and_one_without_fault_in_none(tmp_path: Path) -> None:
    expected = {id: set() if id in SLOW else {id} for id in CHECKS} | {"none": set()}
    expected["store.replace.in_place"] = {"store.replace"}

    assert failed(tmp_path, "not slow", expected) == expected


@pytest.mark.timeout(600)
def test_what_takes_longer_is_proved_too_by_a_store_at_fault_in_just_that(tmp_path: Path) -> None:
    expected = {id: {id} for id in SLOW} | {"none": set()}

    assert SLOW
    assert failed(tmp_path, "slow", expected) == expected


def test_a_suite_without_a_store_says_what_it_needs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from proctor_testkit import LogStoreSuite

        class TestNothing(LogStoreSuite):
            capabilities = frozenset({"torn"})
        """
    )

    result = pytester.runpytest_subprocess(timeout=120)

    result.stdout.fnmatch_lines(["*TestNothing needs `store`, such as a fixture*"])


def test_a_capability_without_its_fixture_says_what_it_needs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from proctor.log import MemoryStore
        from proctor_testkit import LogStoreSuite

        class TestHalf(LogStoreSuite):
            capabilities = frozenset({"failing"})

            @pytest.fixture
            def store(self):
                return MemoryStore()
        """
    )

    result = pytester.runpytest_subprocess("-k", "without_space", timeout=120)

    result.stdout.fnmatch_lines(["*TestHalf declares the capability `failing`: it needs `failing`, such as a fixture*"])
