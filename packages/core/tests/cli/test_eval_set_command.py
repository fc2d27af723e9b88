"""``proctor eval-set`` as a person runs it: its plan and table, interrupted, twice at once, and called again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from child_processes import running
from deadlines import killed_after
from run_status import until

from proctor.cli import main
from proctor.log import read_eval_log_sample_summaries

TASKS = '''
from pathlib import Path
import anyio
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import generate, solver

@solver
def notes(waits_from: int):
    """Note each sample in a file; wait from one on, unless a file says go."""
    async def solve(state, generate):
        with open("asked.txt", "a") as file:
            file.write(f"{state.model} {state.sample_id}\\n")
        if state.sample_id >= waits_from and not Path("go").exists():
            print("WAITING", flush=True)
            await anyio.sleep_forever()
        return state
    return solve

def samples(n):
    return [Sample(input=f"q{i}", target="Default", id=i) for i in range(1, n + 1)]

@task
def quiz(level: int = 1):
    return Task(dataset=samples(3), scorer=includes())

@solver
def fails():
    async def solve(state, generate):
        raise OSError("no route to host")
    return solve

@task
def broken():
    return Task(dataset=samples(1), solver=fails(), scorer=includes())

@task
def waits():
    return Task(dataset=samples(5), solver=[notes(3), generate()], scorer=includes())
'''


class Done(NamedTuple):
    """What a call came to."""

    returncode: int
    stdout: str
    stderr: str


Call = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "proctor", "eval-set", *arguments]


@pytest.fixture
def call(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command in this process."""
    monkeypatch.chdir(folder)

    def call(*arguments: str) -> Done:
        code = main(["eval-set", *arguments])
        return Done(code, *capsys.readouterr())

    return call


def a_set(*more: str, task: str = "quiz", model: str = "mock/a,mock/b") -> Sequence[str]:
    return (f"tasks.py@{task}", "--model", model, "--log-dir", "set", *more)


def test_the_plan_is_shown_first_and_the_table_last(folder: Path, call: Call) -> None:
    done = call(*a_set("--dry-run"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "2 units (a task with a model): 2 new",
        "  new  quiz · mock/a · 3 samples",
        "  new  quiz · mock/b · 3 samples",
    ]
    assert not (folder / "set").exists()

    done = call(*a_set())
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "2 units (a task with a model): 2 new"
    assert [line.split()[:3] for line in lines[-2:]] == [["quiz", "mock/a", "done"], ["quiz", "mock/b", "done"]]

    (folder / "set" / "notes.txt").write_text("mine")
    again = call(*a_set("--display", "none"))
    assert again.returncode == 0
    assert again.stdout.splitlines()[0] == "2 units (a task with a model): 2 complete"
    assert "  complete  quiz · mock/a · 3 / 3 done · set/" in again.stdout
    assert "left alone: 1 file (notes.txt)" in again.stdout
    assert again.stdout.splitlines()[-2:] == lines[-2:]


def test_json_for_programs(folder: Path, call: Call) -> None:
    done = call(*a_set("--json"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["exit_code"], found["success"]) == (0, True)
    assert [unit["state"] for unit in found["plan"]["units"]] == ["new", "new"]
    assert [log["status"] for log in found["logs"]] == ["success", "success"]
    assert found["eval_set_id"] == (folder / "set" / ".eval-set-id").read_text()
    tasks = json.loads((folder / "set" / "eval-set.json").read_text())["tasks"]
    assert [(each["name"], each["model"], each["sequence"]) for each in tasks] == [
        ("quiz", "mock/a", 0),
        ("quiz", "mock/b", 1),
    ]
    assert sorted(path.name.rpartition("_")[2] for path in (folder / "set").glob("*.eval")) == sorted(
        f"{each['task_id']}.eval" for each in tasks
    )


def test_a_change_is_shown_and_refused(call: Call) -> None:
    assert call(*a_set(model="mock/a")).returncode == 0
    for dry in ((), ("--dry-run",)):
        done = call(*a_set("-T", "level=2", *dry, model="mock/a"))
        assert done.returncode == 2
        assert "  changed  quiz · mock/a" in done.stdout and "args.level: 1 -> 2" in done.stdout
        assert done.stderr.startswith("Error: the configuration of quiz (mock/a) is not that of its log set/")
        assert "  args.level: 1 -> 2\n" in done.stderr and "--on-change new" in done.stderr
    done = call(*a_set("-T", "level=2", "--dry-run", "--json", model="mock/a"))
    assert done.returncode == 2
    [unit] = json.loads(done.stdout)["plan"]["units"]
    assert (unit["state"], len(unit["changes"]) > 0) == ("changed", True)
    assert call(*a_set("-T", "level=2", "--on-change", "new", model="mock/a")).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("tasks.py@quiz", "--model", "mock/a"), "--log-dir"),
        (("--model", "mock/a", "--log-dir", "set"), "no task was named"),
        (("tasks.py@quiz", "--model", "mcok/a", "--log-dir", "set"), "Did you mean 'mock'?"),
        ((*a_set(), "--retry-attempts", "-1"), "--retry-attempts: -1 is too small"),
        ((*a_set(), "--on-change", "ask"), "none of refuse, new"),
        ((*a_set(), "--retry-wiat", "1"), "Did you mean --retry-wait"),
        ((*a_set(), "--json", "--display", "plain"), "--json needs standard output for itself"),
    ],
)
def test_bad_input_is_one_paragraph(folder: Path, call: Call, arguments: Sequence[str], says: str) -> None:
    done = call(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ") and says in done.stderr
    assert done.stdout == ""
    assert not (folder / "set").exists()


@contextmanager
def waiting(folder: Path, backend: str) -> Iterator[subprocess.Popen[str]]:
    """A set whose samples 1 and 2 are done, and the others wait."""
    arguments = a_set("--display", "none", "--max-samples", "3", "--async-backend", backend, task="waits")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with running(command(*arguments, "--max-tasks", "2"), cwd=folder, text=True, **pipes) as process:
        assert process.stdout is not None
        seen = 0
        with killed_after(process):
            while seen < 6:
                line = process.stdout.readline()
                assert line, "it ended"
                seen += "WAITING" in line
        yield process


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_second_one_is_refused_and_what_was_stopped_goes_on(
    folder: Path, call: Call, backend: str, number: signal.Signals
) -> None:
    with waiting(folder, backend) as process:
        second = call(*a_set(task="waits"))
        assert second.returncode == 2
        assert f"the eval set in set is being run by process {process.pid}" in second.stderr
        for log in (folder / "set").glob("*.eval"):
            until(lambda log=log: len(read_eval_log_sample_summaries(str(log))) == 2)  # acknowledged
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), output
    assert "Traceback" not in output

    (folder / "go").touch()
    again = call(*a_set("--async-backend", backend, task="waits"))
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[0] == "2 units (a task with a model): 2 resumes"
    assert "  resumes  waits · mock/a · 2 / 5 done (3 " in again.stdout
    asked = Counter((folder / "asked.txt").read_text().splitlines())
    # What was done is never asked for twice; what was cut short is asked for once more.
    assert asked == {f"mock/{m} {n}": 1 if n <= 2 else 2 for m in "ab" for n in range(1, 6)}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_unit_that_rests_does_not_keep_a_signal_waiting(folder: Path, backend: str) -> None:
    arguments = a_set("--display", "none", "--retry-wait", "900", "--async-backend", backend, task="broken")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with running(command(*arguments), cwd=folder, text=True, **pipes) as process:
        assert process.stdout is not None
        with killed_after(process):
            while "Attempt 2 of 11 in 600 s" not in (line := process.stdout.readline()):
                assert line, "it ended"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "Traceback" not in output and "OSError" in output
    assert {header["status"] for header in json.loads((folder / "set" / "logs.json").read_text()).values()} == {"error"}
