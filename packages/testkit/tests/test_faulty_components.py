"""Each check of a suite is proved by a component that is at fault in just that."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from proctor_testkit import DisplaySuite, ModelProviderSuite, ObserverSuite, SandboxSuite, Suite
from proctor_testkit._suite import check_of

SUITES: dict[str, type[Suite]] = {
    "models": ModelProviderSuite,
    "sandboxes": SandboxSuite,
    "displays": DisplaySuite,
    "observers": ObserverSuite,
}
FAMILIES = [
    (components, base.__name__)
    for components, suite in SUITES.items()
    for base in suite.__mro__
    if any(check_of(value) for value in vars(base).values())
]


def faults(components: str, family: str) -> list[str]:
    """The checks that the class ``family`` has; each has a component of its name, or several: ``VARIANTS``."""
    [base] = [base for base in SUITES[components].__mro__ if base.__name__ == family]
    found = (check_of(value) for value in vars(base).values())
    own = sorted(one.id.partition(".")[2] for one in found if one is not None)
    source = (Path(__file__).parent / f"faulty_{components}.py").read_text(encoding="utf-8")
    variants = sorted(set(re.findall(r'^    "(\w+__\w+)",$', source, re.MULTILINE)))
    return own + [name for name in variants if name.partition("__")[0] in own]


def failed(components: str, *names: str) -> dict[str, set[str]]:
    """The checks that each of these components fails; pytest runs their file as a plugin and as tests.

    One process for several: its start costs as much as the checks of two.
    """
    here = Path(__file__).parent
    found: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(here / "faulty_selection.py", Path(folder, "conftest.py"))
        file = Path(shutil.copy(here / f"faulty_{components}.py", Path(folder, f"test_faulty_{components}.py")))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--proctor-report", "r.json"]
        env = os.environ | {"PROCTOR_PLUGINS": str(file)}
        chosen = [f"{file.name}::Test_{name}" for name in names]
        done = subprocess.run([*command, *chosen], cwd=folder, env=env, capture_output=True, text=True, timeout=500)
        assert done.returncode == (names != ("faultless",)), done.stdout + done.stderr
        for row in json.loads(Path(folder, "r.json").read_text()):
            if row["outcome"] != "not applicable":
                assert row["outcome"] in ("passed", "failed"), row
                checks = found.setdefault(row["name"], set())
                checks.update({row["check"].partition(".")[2]} if row["outcome"] == "failed" else set())
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("components", "family"), FAMILIES)
def test_a_faulty_component_fails_in_its_own_check(components: str, family: str) -> None:
    expected = {fault: {fault.partition("__")[0]} for fault in faults(components, family)}

    assert failed(components, *expected) == expected


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("components", SUITES)
def test_a_component_without_fault_passes(components: str) -> None:
    assert failed(components, "faultless") == {"faultless": set()}
