"""The script of CI itself, with checks that fail and checks that hang."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from repo_files import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="CI runs on Linux")

DEV = """#!/bin/sh
echo "this is $1"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the real script, and stand-ins for all that it calls."""
    for name in (".ci/run", "tests/services/docker.sh", "tests/services/podman.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    for engine in ("docker", "podman"):
        script(tmp_path / f"tests/services/{engine}.sh", f'#!/bin/sh\necho "$1" >> {engine}\necho unix:///{engine}\n')
    shutil.copy(ROOT / "tests/services/all.sh", tmp_path / "tests/services/all.sh")
    script(tmp_path / "tests/services/python_image.sh", '#!/bin/sh\necho "$@" >> images\n')
    for name in ("node", "python3"):
        script(tmp_path / "bin" / name, "#!/bin/sh\n")
    return tmp_path


def script(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def ci(checkout: Path, dev: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    script(checkout / "dev", DEV + dev)
    path = f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"
    (checkout / "t").mkdir()
    done = subprocess.run(
        ["bash", ".ci/run", *words],
        cwd=checkout,
        env={**os.environ, "PATH": path, "TMPDIR": str(checkout / "t"), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert list((checkout / "t").iterdir()) == [], "it leaves nothing"
    return done


def test_a_green_run_ends_with_the_closing_line_of_the_complete_pass(checkout: Path) -> None:
    done = ci(checkout, 'case $1 in tests) echo "3 passed in 0.10s" ;; esac')

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "3 passed in 0.10s"
    assert (checkout / "docker").read_text().split() == ["start", "status", "stop"]
    assert (checkout / "images").read_text().split() == ["unix:///docker", "unix:///podman"]


def test_what_the_engines_leave_running_is_no_fault_of_theirs(checkout: Path) -> None:
    stays = "case $1 in start) setsid sleep 3600 >/dev/null 2>&1 & echo $! > left ;; esac"
    script(checkout / "tests/services/docker.sh", f"#!/bin/sh\n{stays}\n")

    try:
        done = ci(checkout, 'case $1 in tests) echo "3 passed in 0.10s" ;; esac')
    finally:
        os.kill(int((checkout / "left").read_text()), signal.SIGKILL)

    assert done.returncode == 0, done.stdout + done.stderr


def test_where_no_engine_starts_no_test_does(checkout: Path) -> None:
    script(checkout / "tests/services/podman.sh", "#!/bin/sh\necho 'no package podman'; exit 4\n")

    done = ci(checkout, "")

    assert done.returncode == 4
    assert "no package podman" in done.stdout
    assert "::: tests begins" not in done.stdout
    assert done.stdout.splitlines()[-1] == "::: FAILED with exit code 4: engines (exit code 4)"


def test_each_step_says_how_much_it_computed(checkout: Path) -> None:
    busy = "python3 -c 'import time\nwhile time.process_time() < 2: pass'"
    python = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n'
    script(checkout / "bin" / "python3", python)

    done = ci(checkout, f"case $1 in lint) {busy} ;; peers) sleep 6 ;; esac")

    assert done.returncode == 0, done.stdout + done.stderr
    computed = dict(re.findall(r"^::: (\S+) took \d+ s, (\d+) s of processor time$", done.stdout, re.MULTILINE))
    assert int(computed["lint"]) in (1, 2, 3)
    assert int(computed["peers"]) < 2


def test_the_foundation_is_all_without_the_packages_of_services(checkout: Path) -> None:
    done = ci(checkout, 'echo "$@" >> steps; case $1 in tests) echo "3 passed in 0.10s" ;; esac', "foundation")

    assert done.returncode == 0, done.stdout + done.stderr
    steps = {line.split(" ", 1)[0]: line for line in (checkout / "steps").read_text().splitlines()}
    assert steps.keys() >= {"tests", "unit-3.13", "lowest(core)", "peers", "installed", "lint", "types"}
    assert "alone(sandbox-k8s)" not in steps
    for package in ("log-s3", "provider-bedrock", "sandbox-docker", "sandbox-k8s"):
        assert f"--ignore=packages/{package} " in steps["tests"] + " "


def test_another_word_is_refused(checkout: Path) -> None:
    done = ci(checkout, "", "fundation")

    assert (done.returncode, done.stderr) == (2, "run [foundation], not fundation\n")


def test_a_red_run_says_last_which_tests_failed_in_which_step(checkout: Path) -> None:
    failing = """
        case $1 in
        installed) echo 'FAILED tests/x.py::test_y'; echo '1 failed, 2 passed in 0.10s'; sleep 1; exit 3 ;;
        unit-3.13) trap 'echo "unit got the signal"; exit 1' TERM; echo "unit is at work"; sleep 3600 & wait ;;
        esac
    """

    done = ci(checkout, failing)

    assert done.returncode == 3
    lines = done.stdout.splitlines()
    assert lines[-1] == "::: FAILED with exit code 3: installed (exit code 3)"
    end = done.stdout[done.stdout.index("::: unit-3.13 was ended") :]
    assert "unit is at work\nunit got the signal" in end
    assert "FAILED tests/x.py::test_y" in end
    assert "1 failed, 2 passed in 0.10s" in end
    assert (checkout / "docker").read_text().split()[-1] == "stop"


def test_a_step_that_hangs_is_ended_with_its_children_and_named(checkout: Path) -> None:
    """Given a step whose child outlives it and holds its output, when the time is up, then the run ends at once."""
    hanging = "case $1 in lint) echo 'on its way'; setsid sleep 3600 & echo $! > left; sleep 3600 ;; esac"

    try:
        done = ci(checkout, hanging, CI_STEP_SECONDS="2")
    finally:
        os.kill(int((checkout / "left").read_text()), signal.SIGKILL)

    assert done.returncode == 124
    assert "on its way" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("lint, which took too long and was ended")


def test_a_step_that_leaves_a_process_behind_fails_and_says_which(checkout: Path) -> None:
    done = ci(checkout, "case $1 in lint) setsid sleep 3600 & echo $! > left ;; esac")

    assert done.returncode == 1
    pid = (checkout / "left").read_text().strip()
    assert f"lint left a process: {pid} sleep 3600" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("lint, which left something behind")
    command = Path("/proc", pid, "cmdline")
    assert not command.exists() or command.read_bytes() == b""  # dead, though nobody may have asked for it yet


def test_a_step_that_leaves_files_in_its_temporary_folder_fails_and_says_which(checkout: Path) -> None:
    done = ci(
        checkout, 'case $1 in types) mkdir -p "$TMPDIR/pytest-of-me" "$TMPDIR/proctor-$(id -u)" "$TMPDIR/odd" ;; esac'
    )

    assert done.returncode == 1
    [line] = [line for line in done.stdout.splitlines() if "left in its temporary folder" in line]
    assert line.endswith("/tmp/types/odd")


def test_no_step_starts_when_the_time_for_all_is_up(checkout: Path) -> None:
    done = ci(checkout, "case $1 in unit-3.13) sleep 3600 ;; esac", CI_ALL_SECONDS="3")

    assert done.returncode == 124
    assert "unit-3.13, which took too long" in done.stdout.splitlines()[-1]


def test_no_step_begins_when_one_has_failed(checkout: Path) -> None:
    """Given steps that take all places, when one of them fails, then those that wait for a place never begin."""
    done = ci(checkout, "case $1 in lint) exit 2 ;; tests | types) sleep 3600 ;; esac")

    assert done.returncode == 2
    assert "::: tests begins" in done.stdout
    assert "::: peers begins" not in done.stdout


FLAKY = """
    case $1:$* in
    peers:*--last-failed) echo '1 passed in 0.01s' ;;
    peers:*) echo 'FAILED tests/x.py::test_y'; echo '1 failed, 9 passed in 0.10s'; exit 1 ;;
    tests:*) echo "3 passed in 0.10s" ;;
    esac
"""


def test_a_test_that_fails_beside_others_and_passes_by_itself_is_named_at_the_end(checkout: Path) -> None:
    done = ci(checkout, FLAKY)

    assert done.returncode == 0, done.stdout + done.stderr
    end = done.stdout[done.stdout.index("::: unsteady") :].splitlines()
    assert end[1:] == ["peers: FAILED tests/x.py::test_y", "3 passed in 0.10s"]


def test_a_green_run_ends_with_a_closing_line_also_when_the_complete_pass_was_unsteady(checkout: Path) -> None:
    done = ci(checkout, FLAKY.replace("peers:", "tests:"))

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-2:] == ["tests: FAILED tests/x.py::test_y", "1 passed in 0.01s"]


@pytest.mark.parametrize("said", ["!!!! Interrupted: 1 error during collection !!!!", "1 failed, worker 'gw0' crashed"])
def test_where_tests_never_ran_there_is_no_second_look(checkout: Path, said: str) -> None:
    done = ci(checkout, FLAKY.replace("echo '1 failed", f"echo {shlex.quote(said)}; echo '1 failed"))

    assert done.returncode == 1
    assert "by themselves" not in done.stdout


def test_what_an_unsteady_step_leaves_behind_is_ended_and_said(checkout: Path) -> None:
    done = ci(checkout, FLAKY.replace("exit 1", "setsid sleep 3600 & echo $! > left; exit 1"))

    assert done.returncode == 0, done.stdout + done.stderr
    pid = (checkout / "left").read_text().strip()
    assert f"peers left a process: {pid} sleep 3600" in done.stdout
    command = Path("/proc", pid, "cmdline")
    assert not command.exists() or command.read_bytes() == b""


def test_a_test_that_fails_again_by_itself_ends_the_run(checkout: Path) -> None:
    done = ci(checkout, FLAKY.replace("echo '1 passed in 0.01s'", "echo 'FAILED tests/x.py::test_y'; exit 1"))

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "::: FAILED with exit code 1: peers.again (exit code 1)"


@pytest.mark.parametrize("step", ["lint", "demo"])
def test_what_is_no_test_gets_no_second_look(checkout: Path, step: str) -> None:
    done = ci(checkout, f"case $1 in {step}) echo 'ERROR tests/x.py'; exit 1 ;; esac")

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == f"::: FAILED with exit code 1: {step} (exit code 1)"


def test_where_many_fail_there_is_no_second_look(checkout: Path) -> None:
    done = ci(checkout, FLAKY.replace("echo 'FAILED", "for n in 1 2 3; do echo FAILED $n; done; echo 'FAILED"))

    assert done.returncode == 1
    assert "by themselves" not in done.stdout
    assert done.stdout.splitlines()[-1] == "::: FAILED with exit code 1: peers (exit code 1)"


def test_each_test_runs_whole_in_one_step() -> None:
    text = (ROOT / ".ci/run").read_text(encoding="utf-8")

    # Neither -m nor -k, nor fewer examples; what the first leaves out is whole in the others.
    whole = ['tested tests 3 tests -n 4 --dist worksteal "${elsewhere[@]/#/--ignore=}" --durations=25']
    whole += ["[ \"$part\" = foundation ] || tested pods 1 'alone(sandbox-k8s)' packages/sandbox-k8s/tests"]
    whole += ["tested alone 2 'alone(provider-openai)'", "tested installed 1 installed"]
    assert set(whole) <= set(text.splitlines())
    listed = re.findall(r"^elsewhere\+?=\((.*)\)$", text, re.MULTILINE)
    left_out = subprocess.run(
        ["bash", "-c", f"echo {' '.join(listed)}"], capture_output=True, text=True, timeout=60
    ).stdout.split()
    assert left_out[:2] == ["packages/provider-openai", "packages/sandbox-k8s"]
    for name in left_out[2:]:  # in `installed`, which leaves out what is slow
        path = ROOT / name
        for file in path.glob("test_*.py") if path.is_dir() else [path]:
            assert "mark.slow" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("session", ["unit-3.13", "'lowest(core)'"])
def test_the_core_is_tested_on_other_pythons_and_with_its_oldest_dependencies(session: str) -> None:
    name = session.strip("'").partition("(")[0]
    assert re.search(
        rf"^tested {name} [0-9] {re.escape(session)} ", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert '@nox.session(python="3.12"' in (ROOT / "noxfile.py").read_text(encoding="utf-8")
