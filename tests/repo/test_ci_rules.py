"""What the root conftest refuses in CI, what it leaves to another session, and how it ends a test that hangs."""

from __future__ import annotations

import pytest
from repo_files import ROOT

pytest_plugins = ["pytester"]


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with this repository's conftest, one test that passes and one that is skipped."""
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(
        "import pytest\n\ndef test_there(): pass\n\ndef test_missing(): pytest.skip('the part is not here')\n"
    )
    return pytester


@pytest.mark.parametrize("processes", ["0", "2"])
def test_in_ci_a_skip_fails_the_run_and_its_reason_is_shown(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    monkeypatch.setenv("CI", "true")

    result = project.runpytest_subprocess("-ra", "-n", processes, timeout=60)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*CI=true*1*skipped*", "*the part is not here*"])


def test_elsewhere_a_skip_is_a_skip(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)

    assert project.runpytest_subprocess(timeout=60).ret == pytest.ExitCode.OK


@pytest.mark.parametrize(("peer", "count"), [("", 0), ("/usr/bin/true", 1)])
def test_tests_that_need_a_peer_are_collected_only_where_there_is_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, peer: str, count: int
) -> None:
    monkeypatch.setenv("PROCTOR_PEER_PYTHON", peer)
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    folder = pytester.mkdir("tests") / "interchange"
    folder.mkdir()
    (folder / "test_peer.py").write_text("def test_peer(): pass\n")

    result = pytester.runpytest_subprocess(timeout=60)

    assert result.parseoutcomes().get("passed", 0) == count


HANGS = """
import subprocess

import anyio
import pytest
from child_processes import running


def test_waits_for_a_child():
    with running(["sleep", "3600"], stdout=subprocess.PIPE) as child:
        child.stdout.readline()


@pytest.mark.anyio
async def test_waits_in_a_loop():
    await anyio.sleep_forever()


def test_goes_on(): pass
"""


@pytest.fixture
def hangs(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with this repository's conftest, a little less patient, and tests that hang."""
    text = (ROOT / "conftest.py").read_text(encoding="utf-8")
    assert "GRACE = 60" in text
    pytester.makeconftest(text.replace("GRACE = 60", "GRACE = 3"))
    pytester.makeini(f"[pytest]\npythonpath = {ROOT}/tests/support\nfilterwarnings = error\ntimeout_method = signal\n")
    pytester.makepyfile(HANGS)
    return pytester


@pytest.mark.parametrize("name", ["child", "asyncio"])
def test_a_test_that_hangs_fails_and_the_others_go_on(hangs: pytest.Pytester, name: str) -> None:
    result = hangs.runpytest_subprocess("--timeout=5", "-k", f"{name} or goes_on", timeout=60)

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*Failed: Timeout*", "FAILED *::test_waits_*"])


def test_where_no_signal_gets_a_test_out_of_its_loop_the_run_ends_and_says_where(hangs: pytest.Pytester) -> None:
    result = hangs.runpytest_subprocess("--timeout=1", "-k", "trio or child", timeout=60)

    assert result.ret == 1
    result.stderr.fnmatch_lines(
        ["FAILED *::test_waits_for_a_child", "FAILED *::test_waits_in_a_loop*trio*: it hangs*", "Timeout (0:00:04)!"]
    )
