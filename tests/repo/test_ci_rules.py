"""What the root conftest refuses in CI, and what it leaves to another session."""

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


def test_in_ci_a_skip_fails_the_run_and_its_reason_is_shown(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")

    result = project.runpytest_subprocess("-ra")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*CI=true*1*skipped*", "*the part is not here*"])


def test_elsewhere_a_skip_is_a_skip(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)

    assert project.runpytest_subprocess().ret == pytest.ExitCode.OK


@pytest.mark.parametrize(("peer", "count"), [("", 0), ("/usr/bin/true", 1)])
def test_tests_that_need_a_peer_are_collected_only_where_there_is_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, peer: str, count: int
) -> None:
    monkeypatch.setenv("PROCTOR_PEER_PYTHON", peer)
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    folder = pytester.mkdir("tests") / "interchange"
    folder.mkdir()
    (folder / "test_peer.py").write_text("def test_peer(): pass\n")

    result = pytester.runpytest_subprocess()

    assert result.parseoutcomes().get("passed", 0) == count
