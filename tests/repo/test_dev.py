"""`./dev` on machines that lack something: it finds what there is, or says what to install."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repo_files import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a shell script")

# Stands in for an interpreter: VERSION is 3.N, VENV whether it has the modules venv and ensurepip.
PYTHON = """#!/bin/sh
case "$*" in
--version) echo "Python 3.VERSION.0" ;;
*version_info*) [ VERSION -ge 11 ] ;;
*"import ensurepip"*) VENV ;;
"-m venv "*|"-q "*|"venv "*) for venv in "$@"; do :; done; mkdir -p "$venv/bin"; echo "$0 $*" >> calls
    cp "$0" "$venv/bin/python"; printf '#!/bin/sh\\necho "nox $*"\\n' > "$venv/bin/nox"; chmod +x "$venv/bin/nox" ;;
"-m pip install "*) echo "$0 $*" >> calls ;;
*) exit 9 ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A checkout with the script, and a ``bin`` with what a shell script needs but no Python."""
    shutil.copy(ROOT / "dev", tmp_path / "dev")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/tools.txt").write_text("nox\n")
    (tmp_path / "bin").mkdir()
    for name in ("sh", "dirname", "cat", "mkdir", "cp", "rm", "touch", "chmod"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path


def program(machine: Path, name: str, version: int = 12, venv: bool = True) -> None:
    text = PYTHON.replace("VERSION", str(version)).replace("VENV", "true" if venv else "false")
    path = machine / "bin" / name
    path.write_text(text)
    path.chmod(0o755)


def dev(machine: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(machine / "dev"), *arguments],
        env={"PATH": str(machine / "bin"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def calls(machine: Path) -> str:
    return (machine / "calls").read_text().replace(f"{machine}/", "")


def test_it_makes_its_tools_once_and_runs_the_session(machine: Path) -> None:
    program(machine, "python3")

    first, second = dev(machine, "lint"), dev(machine, "tests", "--", "-k", "x")

    assert (first.returncode, first.stdout) == (0, "nox -s lint --\n"), first.stderr
    assert (second.returncode, second.stdout, second.stderr) == (0, "nox -s tests -- -k x\n", "")
    made, installed = calls(machine).splitlines()
    assert made == "bin/python3 -m venv --clear .venv/dev"
    assert installed.startswith(".venv/dev/bin/python -m pip install") and installed.endswith("requirements/tools.txt")


@pytest.mark.parametrize("name", ["python3.11", "python3.12", "python3.13", "python3.14"])
def test_a_newer_python_beside_an_old_one_is_found(machine: Path, name: str) -> None:
    program(machine, "python3", version=9)
    program(machine, name, version=int(name.rpartition(".")[2]))

    assert dev(machine).returncode == 0
    assert calls(machine).startswith(f"bin/{name} -m venv")


def test_a_python_with_venv_is_preferred_to_one_without(machine: Path) -> None:
    program(machine, "python3", venv=False)
    program(machine, "python3.13", version=13)

    assert dev(machine).returncode == 0
    assert calls(machine).startswith("bin/python3.13 -m venv")


@pytest.mark.parametrize("helper", ["virtualenv", "uv"])
def test_without_venv_what_else_makes_environments_is_used(machine: Path, helper: str) -> None:
    program(machine, "python3", venv=False)
    program(machine, helper)

    assert dev(machine, "lint").returncode == 0
    made = calls(machine).splitlines()[0]
    assert made.startswith(f"bin/{helper} ") and "-p python3 .venv/dev" in made


def test_without_any_of_them_it_says_what_to_install(machine: Path) -> None:
    program(machine, "python3", venv=False)

    done = dev(machine, "lint")

    assert done.returncode == 2
    assert "apt install python3-venv; then run ./dev again" in done.stderr
    assert not (machine / ".venv").exists()


@pytest.mark.parametrize(
    ("old", "given", "says"),
    [
        (True, {}, "here is Python 3.9.0."),
        (False, {}, "here is no python3."),
        (True, {"PYTHON": "/no/python"}, "here is no /no/python."),
    ],
)
def test_no_python_that_is_new_enough_is_said_with_what_is_there(
    machine: Path, old: bool, given: dict[str, str], says: str
) -> None:
    if old:
        program(machine, "python3", version=9)

    done = dev(machine, "lint", **given)

    assert done.returncode == 2
    assert "Python 3.11 or newer is needed" in done.stderr
    assert says in done.stderr
    assert "PYTHON=/path/to/python3" in done.stderr
    assert "not found" not in done.stderr
