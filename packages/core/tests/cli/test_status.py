"""`proctor status` of evaluations in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from child_processes import running
from deadlines import killed_after
from pty_run import PtyRun
from run_status import until

from proctor.cli import main
from proctor.cli._status_text import operation_text, run_text
from proctor.contracts import DEFAULT_CONNECTIONS
from proctor.monitor import RunSocket, run_sockets

TASK = """
import anyio
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import solver
from proctor.util import concurrency

@solver
def visits():
    async def solve(state, generate):
        async with concurrency("my-api", 1):
            await anyio.sleep_forever()
    return solve

@task
def waits():
    return Task(dataset=[Sample(input="q", target="a", id=n) for n in range(1, 31)], solver=visits(), scorer=includes())
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@contextmanager
def _evaluating(tmp_path: Path, backend: str) -> Iterator[int]:
    """An evaluation whose samples all wait; its process."""
    (tmp_path / "waits.py").write_text(TASK)
    command = [sys.executable, "-m", "proctor", "eval", "waits.py", "--model", "mock/model", "--max-samples", "25"]
    command += ["--display", "none", "--log-dir", "logs", "--async-backend", backend]
    with running(command, cwd=tmp_path) as process:
        yield process.pid


def _status(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["status", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def _waiting(run: dict[str, Any]) -> int:
    return sum(gate["waiting"] for gate in run.get("gates", ()) if gate["name"] == "my-api")


def _complete(capsys: pytest.CaptureFixture[str], words: str) -> list[str]:
    count = len(words.split(" ")) - 1
    env = {"_PROCTOR_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    with mock.patch.dict(os.environ, env), pytest.raises(SystemExit):
        main([])
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.slow
def test_two_evaluations_are_shown_and_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with _evaluating(tmp_path, "asyncio") as first, _evaluating(tmp_path, "trio") as second:

        def both() -> Any:
            found = _status(capsys, "--all")
            ready = [run for run in found if _waiting(run) == 24 and run["samples_unfinished"] == 25]
            return found if len(ready) == 2 else None

        runs = {run["pid"]: run for run in until(both)}
        # setpriv, which starts the children, becomes them: their numbers stay
        assert {pid: run["backend"] for pid, run in runs.items()} == {first: "asyncio", second: "trio"}
        assert all(len(run["samples"]) == 25 for run in runs.values())

        assert main(["status"]) == 0
        text = capsys.readouterr().out
        assert f"process {first}" in text
        assert "25 unfinished samples" in text
        assert "waits for a place: my-api" in text
        assert "and 5 more (--all)" in text

        assert main(["status", str(second)]) == 0
        text = capsys.readouterr().out
        assert f"process {second}" in text
        assert f"process {first}" not in text
        assert _status(capsys, runs[first]["run_id"][:8])[0]["pid"] == first

        assert main(["status", "set", "my-api", "3"]) == 2
        assert f"--run; there are {min(first, second)} (" in capsys.readouterr().err
        assert main(["status", str(first), "set", "my-api", "3"]) == 0
        assert capsys.readouterr().out == "my-api: 1 -> 3\n"
        assert main(["status", "set", "connections", "40", "--model", "mock/model", "--run", str(second)]) == 0
        assert capsys.readouterr().out == f"mock/model: {DEFAULT_CONNECTIONS} -> 40\n"
        assert main(["status", "set", "connections", "some", "--run", str(second)]) == 2
        assert main(["status", "set", "connections", "auto", "--run", str(second)]) == 2
        assert "are a fixed number in this run" in capsys.readouterr().err
        assert main(["status", "set", "samples", "30", "--run", str(second), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["changed"][0]["new"] == 30

        until(lambda: [_waiting(run) for run in _status(capsys, str(first))] == [22])
        until(lambda: [_waiting(run) for run in _status(capsys, str(second))] == [29])
        gates = {gate["kind"]: gate["limit"] for gate in _status(capsys, str(second))[0]["gates"]}
        assert gates["connections"] == 40

        assert str(first) in _complete(capsys, "proctor status ")
        assert _complete(capsys, "proctor status set my") == ["my-api"]
        assert _complete(capsys, "proctor status set connections 4 --model ") == ["mock/model"]
    assert main(["status"]) == 0
    assert capsys.readouterr().out.startswith("No evaluation")
    assert not list((tmp_path / "proctor").glob("*.sock")), "killed processes left theirs"


def test_all_runs_are_asked_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Given two runs that answer only when both were asked, then both have answered."""
    both = threading.Barrier(2)

    def answer(question: Any) -> dict[str, Any]:
        both.wait(60)
        return {"ok": True, "run": {"gates": []}}

    servers = [RunSocket(name, answer) for name in ("one", "two")]
    with ExitStack() as ends:
        for server in servers:
            server.start()
            ends.callback(server.close)
        until(lambda: len(list(run_sockets())) == 2)
        assert _status(capsys) == [{"gates": []}, {"gates": []}]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_key_shows_what_samples_wait_for_on_the_screen_and_hides_it(tmp_path: Path, backend: str) -> None:
    """A terminal sends SIGQUIT for Ctrl-\\; it changes nothing of the terminal's mode, nor of what Ctrl-C does."""
    (tmp_path / "waits.py").write_text(TASK)
    command = [sys.executable, "-m", "proctor", "eval", "waits.py", "--model", "mock/model", "--max-samples", "3"]
    command += ["--display", "rich", "--log-dir", "logs", "--async-backend", backend]
    with PtyRun(command, width=100, height=20, env=os.environ, cwd=str(tmp_path)) as run:
        run.wait_for("my-api 1/1")
        assert run.cooked, "keys that are pressed meanwhile are for others"
        os.kill(run.process.pid, signal.SIGQUIT)
        run.wait_for("3 unfinished samples, the longest wait first")
        run.wait_for("waits for a place: my-api")
        os.kill(run.process.pid, signal.SIGQUIT)
        run.wait_until(lambda text: "unfinished" not in text)
        os.kill(run.process.pid, signal.SIGINT)
        assert run.finish() == 130
        assert run.terminal.unknown == []


def test_where_nothing_can_be_drawn_the_key_prints_it_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "waits.py").write_text(TASK)
    command = [sys.executable, "-m", "proctor", "eval", "waits.py", "--model", "mock/model", "--max-samples", "3"]
    command += ["--display", "plain", "--log-dir", "logs"]
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process, killed_after(process):
        assert process.stdout is not None
        until(lambda: [_waiting(run) for run in _status(capsys)] == [2])
        for _ in range(2):
            with pressed_again(process):
                assert any("unfinished sample" in line for line in process.stdout)


@contextmanager
def pressed_again(process: subprocess.Popen[str]) -> Iterator[None]:
    """Press the key every second: one that comes while the last one is answered is no other."""
    done = threading.Event()

    def press() -> None:
        while process.poll() is None:
            process.send_signal(signal.SIGQUIT)
            if done.wait(1):
                return

    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("watch", [[], ["--watch"]])
def test_no_evaluation_is_no_error(watch: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", *watch]) == 0
    assert capsys.readouterr().out == "No evaluation of yours is running on this machine.\n"
    assert _status(capsys, *watch) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["1234567"], "no evaluation of yours with process or run '1234567' is running"),
        (["set", "tasks", "3"], "there is nothing to set"),
        (["set", "tasks", "0"], "0 is not in the range"),
        (["set", "tasks", "many"], "'many' is not a valid integer"),
        (["set", "tasks", "3", "--model", "a/b"], "proctor status set connections N --model a/b"),
        (["set", "connections", "3", "--task", "a"], "proctor status set samples N --task a"),
        (["set"], "Missing argument"),
        (["--nope"], "No such option"),
    ],
)
def test_what_makes_no_sense_gets_a_way_out(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error


def test_a_run_whose_loop_stands_still_is_not_changed(capsys: pytest.CaptureFixture[str]) -> None:
    stuck = RunSocket("abc", lambda question: {"ok": False, "stuck": True, "error": "nothing was changed"})
    stuck.start()
    try:
        until(lambda: _status(capsys))
        assert main(["status", "set", "tasks", "3"]) == 1
        assert capsys.readouterr().err == "Error: nothing was changed\n"
    finally:
        stuck.close()


def test_a_run_that_does_not_answer_is_shown_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(question: object) -> dict[str, Any]:
        raise RuntimeError("broken")

    server = RunSocket("abc", broken)
    server.start()
    try:
        [told] = until(lambda: _status(capsys))
        assert told == {"pid": os.getpid(), "run_id": "abc", "error": "RuntimeError: broken"}
        assert main(["status"]) == 0
        assert "does not answer: RuntimeError: broken" in capsys.readouterr().out
    finally:
        server.close()


def test_watching_ends_with_the_last_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    server = RunSocket("abc", lambda question: {"ok": True, "run": {"pid": os.getpid(), "gates": []}})
    server.start()
    until(lambda: _status(capsys))
    monkeypatch.setattr("proctor.cli._status.time.sleep", lambda seconds: server.close())
    assert main(["status", "--watch", "--json"]) == 0
    looks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [len(look) for look in looks] == [1, 0]


def test_the_text_says_all_that_is_known_of_connections() -> None:
    gate = {
        "kind": "connections",
        "name": "openai/gpt-5",
        "limit": 36,
        "held": 36,
        "waiting": 4,
        "adaptive": {"min": 1, "max": 100, "phase": "slow_start", "latency": 1.23, "refused_at": 38, "hold": 0.0},
        "pace": {"requests_per_minute": 480.2, "tokens_per_minute": None, "max_rpm": 500, "max_tpm": None},
        "backing_off": 2,
        "changes": [{"timestamp": 0.0, "old": 38, "new": 36, "reason": "rate_limit"}],
        "shared": [{"process": 7, "held": 12, "waiting": 1, "limit": 36, "seen": 0.0}],
    }
    run = {
        "run_id": "abc",
        "pid": 7,
        "seconds": 62.0,
        "backend": "trio",
        "log_dir": "logs",
        "units": [],
        "gates": [gate],
        "loop": {"lag": 2.0, "max_lag": 2.0, "stands_in": "t.py:3 solve(): time.sleep(3)", "stalls": []},
        "retries": [{"model": "openai/gpt-5", "role": None, "kinds": {"rate_limit": 12}, "last_error": "429: slow"}],
        "samples_unfinished": 0,
        "samples": [],
    }
    text = run_text(run)
    for said in (
        "adaptive 1-100: slow start, 1.2 s a request, refused at 38",
        "480 requests a minute by the provider's quota, --max-rpm 500, 2 back off",
        "38 -> 36 (rate_limit)",
        "shared: process 7 holds 12 of 36, 1 waiting",
        "stands still in t.py:3 solve(): time.sleep(3)",
        "retries of openai/gpt-5: 12 rate_limit",
        "429: slow",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ({"kind": "gate", "what": "my-api"}, "waits for a place: my-api"),
        ({"kind": "gate", "what": "a/b", "attempt": 1}, "waits for a connection to a/b"),
        ({"kind": "pace", "what": "a/b", "attempt": 1}, "waits for its turn at a/b"),
        ({"kind": "model", "what": "a/b", "attempt": 3, "error": "X: y"}, "waits for a/b to answer, attempt 3; X: y"),
        ({"kind": "retry", "what": "a/b", "attempt": 2, "left": 12.3}, "asks a/b again in 12 s, attempt 2"),
        ({"kind": "tool", "what": "bash"}, "tool bash"),
        ({"kind": "sandbox", "what": "exec ls"}, "sandbox: exec ls"),
        ({"kind": "log", "what": "600 samples are to be written"}, "waits for the log: 600 samples are to be written"),
        ({"kind": "code", "what": "solvers > a"}, "runs code of its own, in solvers > a"),
    ],
)
def test_each_kind_of_operation_has_its_words(operation: dict[str, Any], text: str) -> None:
    assert operation_text(operation) == text
