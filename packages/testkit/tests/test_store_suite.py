"""Each check of log stores is proved by a store that is at fault in just that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proctor_testkit import LogStoreSuite
from proctor_testkit._suite import check_of

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow  # each test runs pytest

# Each store has one fault, which its class is named after. Where a fault would show in several checks, it is so narrow
# that it does not.
FAULTY = Path(__file__).parent / "faulty_stores.py"
SLOW = "Test_none or store__large or store__many or create_processes or hold_processes or lease_dies"
IDS = sorted({found.id for name in dir(LogStoreSuite) if (found := check_of(getattr(LogStoreSuite, name)))})


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The checks that each store fails."""
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "test_faulty.py").write_text(FAULTY.read_text(encoding="utf-8"), encoding="utf-8")
    found: dict[str, set[str]] = {}
    for marks in (["-m", "not slow"], ["-m", "slow", "-k", SLOW]):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--proctor-report", "report.json"]
        done = subprocess.run([*command, *marks], cwd=folder, capture_output=True, text=True, timeout=200)
        assert done.returncode == 1, done.stdout + done.stderr
        for row in json.loads((folder / "report.json").read_text()):
            if row["outcome"] == "not applicable":
                continue
            store = row["component"].rpartition(".Test_")[2].replace("__", ".")
            assert row["outcome"] in ("passed", "failed"), row
            found.setdefault(store, set()).update({row["check"]} if row["outcome"] == "failed" else set())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("fault", IDS)
def test_a_faulty_store_fails_in_its_own_check(failed: dict[str, set[str]], fault: str) -> None:
    assert failed[fault] == {fault}


@pytest.mark.slow
def test_a_store_without_fault_passes(failed: dict[str, set[str]]) -> None:
    assert failed["none"] == set()
    assert set(failed) == {"none", *IDS}


def test_a_suite_without_a_store_says_what_it_needs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from proctor_testkit import LogStoreSuite

        class TestNothing(LogStoreSuite):
            capabilities = frozenset({"torn"})
        """
    )

    result = pytester.runpytest_subprocess(timeout=120)

    result.stdout.fnmatch_lines(["*TestNothing needs a fixture `store`*"])


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

    result.stdout.fnmatch_lines(["*TestHalf declares the capability 'failing': it needs a fixture `failing`*"])
