"""The kit as a pytest plugin: what is wrong with a suite is told once, and what became of its checks gets out."""

from __future__ import annotations

import json

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow  # each test runs pytest

QUIET = ("-p", "no:cacheprovider")
CHECKS = """
import pytest
from proctor_testkit import Suite, check

class Checks(Suite):
    backends = ("asyncio",)

    @check("kit.fine")
    def test_fine(self):
        pass

    @check("kit.wrong", level="should")
    def test_wrong(self):
        assert False

    @check("kit.left", needs="more")
    def test_left(self):
        pass
"""


def test_a_suite_that_lacks_something_is_one_error_with_its_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from proctor_testkit import LogStoreSuite, ModelProviderSuite, SandboxSuite

        class TestModel(ModelProviderSuite):
            pass

        class TestServer(ModelProviderSuite):
            model = "mock/model"
            capabilities = {"server"}

        class TestSandbox(SandboxSuite):
            pass

        class TestStore(LogStoreSuite):
            capabilities = {"torn"}
        """
    )

    result = pytester.runpytest_subprocess(*QUIET, timeout=120)

    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(
        [
            '*TestModel needs `model`, such as model = "acme/small-1"',
            "*TestServer declares the capability `server`: it needs `server`, such as a fixture that yields*",
            '*TestSandbox needs `provider`, such as provider = "acme", the name of its record',
            "*TestStore needs `store`, such as a fixture that returns an empty log store",
            "*TestStore declares the capability `torn`: it needs `torn`*",
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_a_check_that_is_replaced_after_its_class_was_made_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CHECKS + "\nclass TestIt(Checks):\n    pass\nTestIt.test_wrong = lambda self: None\n")

    result = pytester.runpytest_subprocess(*QUIET, timeout=120)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TestIt.test_wrong overrides the check kit.wrong*"])


def test_a_check_that_fails_says_which_it_is(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CHECKS + "\nclass TestIt(Checks):\n    pass\n")

    result = pytester.runpytest_subprocess(*QUIET, timeout=120)

    result.stdout.fnmatch_lines(["*conformance check*", "kit.wrong (should) of TestIt"])


def test_the_report_and_the_summary_have_what_ran_in_other_processes(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(CHECKS + "\nclass TestIt(Checks):\n    pass\n")

    result = pytester.runpytest_subprocess(*QUIET, "-n", "2", "--proctor-report", "new/folder/r.json", timeout=120)

    rows = json.loads((pytester.path / "new" / "folder" / "r.json").read_text())
    assert sorted((row["check"], row["outcome"]) for row in rows) == [
        ("kit.fine", "passed"),
        ("kit.left", "not applicable"),
        ("kit.wrong", "failed"),
    ]
    result.stdout.fnmatch_lines(["component It: 1 passed, 1 not applicable, 1 failed"])


def test_a_report_that_can_not_be_written_is_refused_at_the_start(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(): raise SystemExit('it ran')")

    result = pytester.runpytest_subprocess(*QUIET, "--proctor-report", str(pytester.path), timeout=120)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --proctor-report: nothing can be written to *: * is a folder"])
    assert "it ran" not in result.stdout.str()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    "hang",
    ["time.sleep(100)", "with anyio.CancelScope(shield=True): await anyio.sleep(100)"],
    ids=["blocked", "shielded"],
)
def test_a_check_that_can_not_be_cancelled_ends_the_run_with_its_name(
    pytester: pytest.Pytester, backend: str, hang: str
) -> None:
    pytester.makepyfile(
        f"""
        import anyio, pytest, time
        import proctor_testkit._watchdog
        from proctor_testkit import Suite, check

        proctor_testkit._watchdog.GRACE = 0.5

        class TestHanging(Suite):
            pytestmark = pytest.mark.anyio
            backends = ({backend!r},)

            @check("kit.first")
            def test_first(self):
                assert False

            @check("kit.hangs", seconds=0.1)
            async def test_hangs(self):
                {hang}
        """
    )

    options = (*QUIET, "-p", "no:timeout", "--proctor-report", "r.json")
    result = pytester.runpytest_subprocess(*options, timeout=60)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stderr.fnmatch_lines(
        [
            "*most recent call first*",  # the stacks
            "FAILED *::TestHanging::test_first",
            f"FAILED *::TestHanging::test_hangs?{backend}?: the check kit.hangs hangs and cannot be cancelled*",
        ]
    )
    rows = json.loads((pytester.path / "r.json").read_text())
    assert [row["check"] for row in rows if row["outcome"] == "failed"] == ["kit.first", "kit.hangs"]
