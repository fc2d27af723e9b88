"""Each check of a suite is proved by a component that is at fault in just that."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from proctor_testkit import DisplaySuite, ModelProviderSuite, ObserverSuite, SandboxSuite, Suite

SUITES: dict[str, type[Suite]] = {
    "models": ModelProviderSuite,
    "sandboxes": SandboxSuite,
    "displays": DisplaySuite,
    "observers": ObserverSuite,
}
ONE_BY_ONE = {"sandboxes"}
"""Where all of them in a row take minutes."""
CASES = [(name, one.id.partition(".")[2]) for name, suite in SUITES.items() for one in suite.checks()]


def failed(components: str, fault: str) -> set[str]:
    """The checks that a component of a file fails."""
    return _failed(components, fault if components in ONE_BY_ONE else "")[fault]


@functools.cache
def _failed(components: str, only: str) -> dict[str, set[str]]:
    """The checks that each component of a file fails, or one alone; pytest runs it as a plugin and as tests."""
    here = Path(__file__).parent
    found: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(here / "faulty_selection.py", Path(folder, "conftest.py"))
        file = Path(shutil.copy(here / f"faulty_{components}.py", Path(folder, f"test_faulty_{components}.py")))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--proctor-report", "r.json"]
        env = os.environ | {"PROCTOR_PLUGINS": str(file)}
        chosen = f"{file.name}::Test_{only}" if only else file.name
        done = subprocess.run([*command, chosen], cwd=folder, env=env, capture_output=True, text=True, timeout=500)
        assert done.returncode == (only != "faultless"), done.stdout + done.stderr
        for row in json.loads(Path(folder, "r.json").read_text()):
            if row["outcome"] != "not applicable":
                assert row["outcome"] in ("passed", "failed"), row
                checks = found.setdefault(row["name"], set())
                checks.update({row["check"].partition(".")[2]} if row["outcome"] == "failed" else set())
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("components", "fault"), CASES, ids=lambda value: value)
def test_a_faulty_component_fails_in_its_own_check(components: str, fault: str) -> None:
    assert failed(components, fault) == {fault}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("components", SUITES)
def test_a_component_without_fault_passes(components: str) -> None:
    assert failed(components, "faultless") == set()
