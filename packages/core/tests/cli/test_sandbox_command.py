"""``proctor sandbox``, with sandboxes of real processes, and with a provider that goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import odd_sandboxes as odd
import pytest
from child_processes import running

from proctor import plugins
from proctor.cli import main
from proctor.contracts import SandboxBrokenError

OWNER = """
import sys, anyio
from proctor.sandbox import LocalSandboxDriver, configure_sandboxes

async def main():
    with configure_sandboxes(run_id=sys.argv[1], keep=len(sys.argv) > 2):
        made = await LocalSandboxDriver().sample_init("quiz", None, dict())
        print(made["default"].directory, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""
Owner = Callable[..., tuple[subprocess.Popen[str], Path]]


@pytest.fixture(autouse=True)
def only_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The local provider and one that goes wrong, each with nothing of other tests."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    odd.reset()
    odd.there.clear()
    use("odd_sandboxes")
    yield
    plugins.configure((), ())


def use(*modules: str) -> None:
    """Have these plugins and the core, whatever else is installed."""
    plugins.configure((), ())
    installed = {info.distribution for info in plugins.inventory() if info.kind == "sandbox_providers"}
    plugins.configure(modules, sorted(installed - {"proctor-core"}))


@pytest.fixture
def owner() -> Iterator[Owner]:
    """Starts a process that has a sandbox; gives it, and the sandbox's folder."""
    with ExitStack() as stack:

        def start(*arguments: str) -> tuple[subprocess.Popen[str], Path]:
            command = [sys.executable, "-c", OWNER, *arguments]
            process = stack.enter_context(running(command, stdout=subprocess.PIPE, text=True))
            assert process.stdout is not None
            return process, Path(process.stdout.readline().strip()).parent

        yield start


def dies(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(60)


def asked(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert main(["sandbox", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_they_are_listed_with_whose_they_are(owner: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    _, alive = owner("run1")
    process, dead = owner("run2", "keep")
    dies(process)

    rows = {row["id"]: row for row in asked(capsys, "list", "local")["sandboxes"]}
    assert main(["sandbox", "list", "local"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert {id: (row["alive"], row["owner"]["run_id"]) for id, row in rows.items()} == {
        alive.name: (True, "run1"),
        dead.name: (False, "run2"),
    }
    assert rows[alive.name]["enter"] == f"cd {alive}/work && ${{SHELL:-sh}}"
    assert lines[0].split() == ["PROVIDER", "ID", "STATE", "AGE", "OWNER", "SAMPLE", "RUN"]
    [line] = [line for line in lines if dead.name in line]
    assert f"{process.pid} ended, kept" in line


def test_where_there_is_none_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "list"]) == 0
    assert capsys.readouterr().out == "There is no sandbox.\n"
    assert main(["sandbox", "cleanup"]) == 0
    assert capsys.readouterr().out == "Nothing was removed.\n"


@pytest.mark.slow
def test_cleanup_takes_what_ended_evaluations_left_and_says_what_stays(
    owner: Owner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, alive = owner("run1")
    for arguments in (["run2"], ["run3", "keep"]):
        dies(owner(*arguments)[0])

    told = asked(capsys, "cleanup")

    assert len(told["removed"]) == 2
    assert told["stay"] == 1
    assert list(tmp_path.iterdir()) == [alive]


@pytest.mark.slow
def test_one_is_taken_away_by_its_id_and_those_of_a_run_by_the_run_s(
    owner: Owner, capsys: pytest.CaptureFixture[str]
) -> None:
    left = []
    for run_id in ("run1", "run2", "run2"):
        process, folder = owner(run_id)
        dies(process)
        left.append(folder)

    assert asked(capsys, "cleanup", left[0].name)["removed"] == [{"provider": "local", "name": left[0].name}]
    assert len(asked(capsys, "cleanup", "local", "run2")["removed"]) == 2
    assert not any(folder.exists() for folder in left)


def test_what_belongs_to_a_living_evaluation_is_taken_away_with_all_only(
    owner: Owner, capsys: pytest.CaptureFixture[str]
) -> None:
    process, folder = owner("run1")
    assert main(["sandbox", "cleanup", "local", folder.name]) == 2
    said = capsys.readouterr().err
    assert f"the evaluation of process {process.pid}, which goes on: --all" in said
    assert folder.exists()

    assert main(["sandbox", "cleanup", "local", "--all"]) == 0
    assert not folder.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cleanup", "nothing-here"], "no sandbox or run 'nothing-here': `proctor sandbox list`"),
        (["cleanup", "nowhere", "x"], "nowhere"),
        (["cleanup", "local", "x", "y"], "too many words"),
        (["shell", "box"], "several sandboxes are called 'box', or begin so: box1 (odd), box2 (odd)"),
        (["shell", "box1"], "nobody can get into box1 (odd): it is running"),
        (["list", "nowhere"], "nowhere"),
        (["list", "absent"], "an_sdk_that_is_not_there"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    use("odd_sandboxes", "absent_sandboxes")
    odd.reset()
    odd.there.update(box1=odd.there["left1"], box2=odd.there["left1"])
    assert main(["sandbox", *words]) == 2
    assert said in capsys.readouterr().err
    assert "box1" in odd.there


def test_a_provider_that_can_not_be_asked_keeps_no_other_from_it(
    owner: Owner, capsys: pytest.CaptureFixture[str]
) -> None:
    use("odd_sandboxes", "absent_sandboxes")
    process, folder = owner("run1")
    dies(process)
    told = asked(capsys, "list", code=0)  # what is not set up on this machine is no fault of it
    assert [row["id"] for row in told["sandboxes"]] == [folder.name]
    assert "an_sdk_that_is_not_there" in told["errors"]["absent"]
    assert told["absent"] == ["absent"]


def test_an_engine_that_is_there_and_does_not_answer_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use("odd_sandboxes", "absent_sandboxes")
    odd.reset()

    async def fails(self: object) -> None:
        raise SandboxBrokenError("the engine does not answer")

    monkeypatch.setattr(odd.OddDriver, "sandboxes", fails)
    told = asked(capsys, "list", code=1)
    assert told["errors"]["odd"] == "the engine does not answer"


def test_what_can_not_be_taken_away_is_said_and_the_rest_is(owner: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    odd.reset()
    odd.there["broken"] = odd.there["left1"]
    dies(owner("run1")[0])
    told = asked(capsys, "cleanup", code=1)
    assert [each["provider"] for each in told["removed"]] == ["local"]
    assert told["errors"]["odd"] == "SandboxBrokenError: the engine does not answer"


@pytest.mark.slow
def test_a_shell_runs_in_the_sandbox_and_its_exit_code_is_ours(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "sh")
    _, folder = owner("run1")
    command = [sys.executable, "-m", "proctor", "sandbox", "shell", folder.name]
    done = subprocess.run(command, input="pwd; exit 7\n", capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.returncode) == (f"{folder}/work\n", 7)
