"""``proctor`` as a person runs it: task files on disk, the mock model; processes where they matter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
from child_processes import running
from pty_run import PtyRun

from proctor.cli import main

TASKS = '''\
from pathlib import Path

from proctor import Task, task
from proctor.dataset import MemoryDataset, Sample, csv_dataset
from proctor.scorer import includes
from proctor.solver import generate, solver


@solver
def fail_every(n):
    async def solve(state, generate):
        if int(state.sample_id) % n == 0:
            raise OSError("the disk is on fire")
        return state
    return solve


@solver
def wait():
    async def solve(state, generate):
        import anyio
        Path("started").touch()
        print("a solver prints")
        await anyio.sleep(60)
        return state
    return solve


def samples(n):
    return MemoryDataset([Sample(input=f"What is 1 + {i}?", target="Default") for i in range(n)])


@task
def quiz(n: int = 4):
    """A small quiz."""
    return Task(dataset=samples(n), solver=generate(), scorer=includes())


@task
def faulty(every: int = 2):
    return Task(dataset=samples(4), solver=[fail_every(every), generate()], scorer=includes())


@task
def slow():
    return Task(dataset=samples(2), solver=wait(), scorer=includes())


@task
def raises():
    raise RuntimeError("the data are gone")


@task
def empty():
    return Task(dataset=MemoryDataset([]), scorer=includes())


@task
def ragged():
    return Task(dataset=csv_dataset("ragged.csv"), scorer=includes())


@task
def duplicates():
    return Task(dataset=MemoryDataset([Sample(input="a", id=1), Sample(input="b", id="1")]), scorer=includes())
'''
QUIZ = "quiz.py@quiz"
MODEL = ("--model", "mock/model")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Task files, good and bad."""
    where = tmp_path_factory.mktemp("tasks")
    (where / "quiz.py").write_text(TASKS)
    (where / "other.py").write_text(TASKS)
    (where / "no_task.py").write_text("x = 1\n")
    (where / "broken.py").write_text("from proctor import task\n\n@task\ndef t(:\n")
    (where / "needs.py").write_text("import not_installed_anywhere\nfrom proctor import task\n\n@task\ndef t(): ...\n")
    (where / "ragged.csv").write_text("input,target\na,b\nc,d,e\n")
    (where / "not_a_log.eval").write_text("not a log")
    (where / "a_file").write_text("")
    return where


def environment(**more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PROCTOR_", "COV_"))}
    return {**clean, **more}


def proctor(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proctor", *arguments],
        cwd=folder,
        env=environment(**env),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


@dataclass
class Said:
    """What the command line did in this process."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """``proctor`` without the second that a process of its own takes to start."""
    monkeypatch.chdir(folder)

    def inside(*arguments: str, **env: str) -> Said:
        with mock.patch.dict(os.environ, environment(**env), clear=True):
            code = main(arguments)
        return Said(code, *capfd.readouterr())

    return inside


def logs_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.eval"))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_quiz_is_evaluated_and_its_score_printed(folder: Path, tmp_path: Path, backend: str) -> None:
    done = proctor(folder, "eval", QUIZ, *MODEL, "--log-dir", str(tmp_path), PROCTOR_ASYNC_BACKEND=backend)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "quiz · mock/model · 4 samples"
    assert any(line.startswith("  accuracy") and line.endswith("4 / 4 scored") for line in lines)
    [log] = logs_in(tmp_path)
    assert lines[-1].split() == ["log", str(log)]
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_two_models_and_options_from_all_sides(folder: Path, inside: Callable[..., Said], tmp_path: Path) -> None:
    (folder / "args.yaml").write_text("n: 9\n")
    done = inside(
        *("eval", QUIZ, "--model", "mock/a,mock/b", "--task-config", "args.yaml", "-T", "n=3", "--json"),
        PROCTOR_LOG_DIR=str(tmp_path),
        PROCTOR_EVAL_EPOCHS="2",
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert [log["model"] for log in summary["logs"]] == ["mock/a", "mock/b"]
    assert [log["total_samples"] for log in summary["logs"]] == [6, 6]
    assert [log["metrics"][0]["total"] for log in summary["logs"]] == [3, 3]


def test_a_dry_run_writes_nothing(inside: Callable[..., Said], tmp_path: Path) -> None:
    done = inside("eval", QUIZ, *MODEL, "--dry-run", "--epochs", "3", "--log-dir", str(tmp_path / "logs"))
    assert done.returncode == 0, done.stderr
    assert "quiz · mock/model · 12 samples (3 epochs)" in done.stdout
    assert not list(tmp_path.glob("logs/*"))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 1),
        (("--no-fail-on-error",), 0),
        (("--fail-on-error=0.5",), 0),
        (("--fail-on-error", "1", "--continue-on-fail"), 3),
        (("--fail-on-error=1",), 1),
    ],
)
def test_errors_of_samples_decide_the_exit_code(
    inside: Callable[..., Said], tmp_path: Path, options: Sequence[str], code: int
) -> None:
    done = inside("eval", "quiz.py@faulty", *MODEL, "--log-dir", str(tmp_path), *options)
    assert done.returncode == code, done.stdout + done.stderr
    assert "OSError" in done.stdout
    assert len(logs_in(tmp_path)) == 1
    if code == 0:
        assert "2 / 4 scored" in done.stdout
        assert "2 errors (OSError 2)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((QUIZ, "--model", "mcok/model"), "Did you mean 'mock'?"),
        ((QUIZ, "--model", "anthropic/claude"), "pip install --upgrade proctor-provider-anthropic"),
        ((QUIZ, "--model", "model"), "provider/model"),
        ((QUIZ,), "--model"),
        (("quiz.py@quzi", *MODEL), "did you mean 'quiz'?"),
        (("quizz.py", *MODEL), "did you mean quiz.py?"),
        ((QUIZ, "--modle", "mock/model"), "Did you mean --model"),
        (("no_task.py", *MODEL), "@task"),
        (("broken.py", *MODEL), "line 4"),
        (("needs.py", *MODEL), "not_installed_anywhere"),
        (("quiz.py@raises", *MODEL), "RuntimeError: the data are gone"),
        (("quiz.py@empty", *MODEL), "no samples"),
        (("quiz.py@ragged", *MODEL), "ragged.csv, line 3"),
        (("quiz.py@duplicates", *MODEL), "unique"),
        ((QUIZ, *MODEL, "-T", "m=1"), "'m'"),
        ((QUIZ, *MODEL, "-M", "latncy=1"), "Did you mean 'latency'?"),
        ((QUIZ, *MODEL, "-M", "latency=soon"), "must be a number"),
        ((QUIZ, *MODEL, "--log-dir", "a_file/logs"), "Name another with --log-dir"),
        ((QUIZ, *MODEL, "--log-dir", "s4://bucket"), "log store"),
        ((QUIZ, *MODEL, "--limit", "0"), "smallest is 1"),
        ((QUIZ, *MODEL, "--epochs", "0"), "smallest is 1"),
        ((QUIZ, "other.py@quiz", *MODEL), "two tasks are called 'quiz'"),
        ((QUIZ, *MODEL, "--sample-id", "77"), "no sample '77'"),
        ((QUIZ, *MODEL, "--display", "plian"), "Did you mean 'plain'?"),
        ((QUIZ, *MODEL, "--sandbox", "dokcer"), "Did you mean 'docker'?"),
        ((QUIZ, *MODEL, "--observer", "mlfow"), "Did you mean 'mlflow'?"),
        ((QUIZ, *MODEL, "--plugin", "nowhere.py"), "nowhere.py"),
        ((QUIZ, *MODEL, "--task-config", "nowhere.yaml"), "nowhere.yaml"),
        ((QUIZ, *MODEL, "--solver", "genrate"), "genrate"),
    ],
)
def test_bad_input_ends_before_anything_is_sent_and_says_what_to_do(
    inside: Callable[..., Said], tmp_path: Path, arguments: Sequence[str], says: str
) -> None:
    done = inside("eval", *arguments, PROCTOR_LOG_DIR=str(tmp_path))
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("Error: ")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert logs_in(tmp_path) == []


@pytest.mark.parametrize("command", [("dump",), ("headers",), ("recover",), ("convert", "--to", "json")])
@pytest.mark.parametrize(("path", "says"), [("not_a_log.eval", "is not an evaluation log"), ("none.eval", "none.eval")])
def test_a_log_that_is_no_log_is_refused(
    inside: Callable[..., Said], tmp_path: Path, command: Sequence[str], path: str, says: str
) -> None:
    more = ("--output-dir", str(tmp_path)) if command[0] == "convert" else ()
    done = inside("log", *command, path, *more)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_log_is_listed_and_dumped(inside: Callable[..., Said], tmp_path: Path) -> None:
    assert inside("eval", QUIZ, *MODEL, "--json", PROCTOR_LOG_DIR=str(tmp_path)).returncode == 0
    [log] = logs_in(tmp_path)
    listed = inside("log", "list", PROCTOR_LOG_DIR=str(tmp_path))
    assert log.name in listed.stdout
    dumped = json.loads(inside("log", "dump", str(log)).stdout)
    assert dumped["status"] == "success"
    assert len(dumped["samples"]) == 4


def test_bad_input_ends_the_process_with_one_paragraph(folder: Path) -> None:
    done = proctor(folder, "eval", QUIZ, "--model", "mcok/model")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: There is no model provider 'mcok'. Did you mean 'mock'?\n"


def test_debug_shows_where_bad_input_was_noticed(folder: Path) -> None:
    done = proctor(folder, "eval", QUIZ, "--model", "mcok/model", PROCTOR_DEBUG="1")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals and pseudo-terminals are a thing of POSIX")
class TestOnATerminal:
    """What a person at a terminal sees and does."""

    def start(self, folder: Path, logs: Path, *arguments: str) -> PtyRun:
        (folder / "started").unlink(missing_ok=True)
        command = [sys.executable, "-m", "proctor", "eval", *arguments, *MODEL, "--log-dir", str(logs)]
        return PtyRun(command, width=100, height=30, cwd=str(folder), env=environment())

    def test_progress_is_drawn_over_and_the_report_stays(self, folder: Path, tmp_path: Path) -> None:
        with self.start(folder, tmp_path, QUIZ) as run:
            assert run.finish() == 0
        lines = run.terminal.text.splitlines()
        assert lines[0].startswith("quiz · mock/model · done in")
        assert str(logs_in(tmp_path)[0]) in "".join(lines)
        assert run.terminal.unknown == []

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_a_signal_stops_in_an_orderly_way(
        self, folder: Path, tmp_path: Path, number: signal.Signals, code: int
    ) -> None:
        with self.start(folder, tmp_path, "quiz.py@slow") as run:
            run.wait_for("a solver prints")
            run.process.send_signal(number)
            assert run.finish() == code
        text = run.terminal.text
        assert "cancelled" in text
        assert "Traceback" not in text
        [log] = logs_in(tmp_path)
        assert log.name in text.replace("\n", "")


def test_the_end_of_the_pipe_is_not_the_end_of_the_run(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "proctor", "eval", QUIZ, *MODEL, "--log-dir", str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with running(command, cwd=folder, env=environment(), text=True, **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(60)
    assert errors == ""
    [log] = logs_in(tmp_path)
    assert log.stat().st_size > 0
