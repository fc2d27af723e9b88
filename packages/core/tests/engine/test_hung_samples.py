"""Samples that do not stop when they are told to: the others are done, they are recorded, and the process ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from child_processes import running
from deadlines import killed_after
from pty_run import PtyRun

from proctor.log import read_eval_log
from proctor.schema import EvalLog

SUPPORT = Path(__file__).parents[1] / "support"

pytestmark = pytest.mark.slow  # each waits for the patience with a process to run out

ENDS = 60  # seconds: far more than any of it takes

BACKENDS = ["asyncio", "trio"]
WAYS = ["swallows", "shielded", "thread", "nested", "children"]


@contextmanager
def _started(
    tmp_path: Path, backend: str, what: Sequence[str] = ("eval", "hung.py", "--model", "mock/model"), **arguments: Any
) -> Iterator[subprocess.Popen[str]]:
    shutil.copy(SUPPORT / "hung.py", tmp_path)
    command = [sys.executable, "-m", "proctor", *what, "--display", "none"]
    command += ["--log-dir", "logs", "--async-backend", backend, *arguments.pop("options", [])]
    for name, value in arguments.items():
        command += ["-T", f"{name}={value}"]
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "HANGS" in line:
                break
        assert lines and "HANGS" in lines[-1], "".join(lines)
        yield process


def _log(tmp_path: Path) -> EvalLog:
    [file] = (tmp_path / "logs").glob("*.eval")
    return read_eval_log(str(file))


def _ends(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=ENDS)
    assert "Traceback" not in output
    return output


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("how", WAYS)
def test_a_solver_that_outlives_its_time_limit_is_left_behind_and_scored(
    tmp_path: Path, backend: str, how: str
) -> None:
    with _started(tmp_path, backend, how=how, time_limit=0.3) as process:
        output = _ends(process)

    assert process.returncode == 0, output
    log = _log(tmp_path)
    assert log.status == "success"
    samples = {sample.id: sample for sample in log.samples or ()}
    assert set(samples) == {1, 2, 3}
    limit = samples[2].limit
    assert limit is not None
    assert limit.type == "time"
    assert "the solver did not stop" in (limit.reason or "")
    assert samples[2].output.completion  # what it had is kept
    assert all(sample.scores for sample in samples.values())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_scorer_that_does_not_stop_costs_its_own_sample_alone(tmp_path: Path, backend: str) -> None:
    options = ["--no-fail-on-error"]
    with _started(tmp_path, backend, how="shielded", time_limit=0.3, where="scorer", options=options) as process:
        output = _ends(process)

    assert process.returncode == 0, output
    samples = {sample.id: sample for sample in _log(tmp_path).samples or ()}
    error = samples[2].error
    assert error is not None
    assert "the scorer did not stop" in error.message
    assert samples[2].messages
    assert samples[1].error is None
    assert samples[3].error is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_code_that_blocks_the_loop_past_a_deadline_ends_the_process_with_the_log_as_far_as_it_came(
    tmp_path: Path, backend: str
) -> None:
    with _started(tmp_path, backend, how="loop", time_limit=0.3, options=["--max-samples", "1"]) as process:
        output = _ends(process)

    assert process.returncode == 1, output
    assert "stands still in hung.py" in output
    log = _log(tmp_path)
    assert log.status == "error"
    assert log.error is not None
    assert "hung.py" in log.error.message
    samples = {sample.id: sample for sample in log.samples or ()}
    assert samples[1].error is None
    assert samples[2].error is not None
    assert samples[2].output.completion


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("how", "number", "code"),
    [(how, signal.SIGINT, 130) for how in (*WAYS, "loop")] + [(how, signal.SIGTERM, 143) for how in ("thread", "loop")],
)
def test_the_first_signal_ends_a_run_with_a_sample_that_does_not_stop(
    tmp_path: Path, backend: str, how: str, number: signal.Signals, code: int
) -> None:
    with _started(tmp_path, backend, how=how, options=["--max-samples", "1"]) as process:
        process.send_signal(number)
        output = _ends(process)

    assert process.returncode == code, output
    log = _log(tmp_path)
    assert log.status == "cancelled"
    samples = {sample.id: sample for sample in log.samples or ()}
    assert samples[1].error is None
    assert samples[1].scores
    assert samples[2].error is not None
    assert samples[2].output.completion


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cleanup_that_goes_on_after_the_signal_takes_nothing_from_its_sample(tmp_path: Path, backend: str) -> None:
    with _started(tmp_path, backend, how="shielded", where="cleanup", options=["--max-samples", "1"]) as process:
        process.send_signal(signal.SIGINT)
        output = _ends(process)

    assert process.returncode == 130, output
    samples = {sample.id: sample for sample in _log(tmp_path).samples or ()}
    assert samples[2].error is None
    assert samples[2].scores


@pytest.mark.parametrize("backend", BACKENDS)
def test_sigterm_has_a_deadline_that_nothing_can_move(tmp_path: Path, backend: str) -> None:
    """Here it is shorter than what the run needs by itself to leave the sample behind."""
    with _started(tmp_path, backend, how="swallows", options=["--stop-timeout", "0.2"]) as process:
        process.send_signal(signal.SIGTERM)
        output = _ends(process)

    assert process.returncode == 143, output
    assert "SIGTERM" in output
    assert _log(tmp_path).status == "cancelled"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("how", ["swallows", "children"])
def test_a_resume_ends_though_the_loop_does_not(tmp_path: Path, backend: str, how: str) -> None:
    # given a run that was stopped
    with _started(tmp_path, backend, how=how, time_limit=0.3) as process:
        process.send_signal(signal.SIGINT)
        _ends(process)
    first = _log(tmp_path).location

    # when it is gone on with, and the sample hangs again
    with _started(tmp_path, backend, ["eval-retry", first, "--json"]) as process:
        output = _ends(process)

    # then it is left behind, and what came of it is shown all the same
    assert process.returncode == 0, output
    assert '"exit_code": 0' in output
    again = [file for file in (tmp_path / "logs").glob("*.eval") if str(file) != first and file.name not in first]
    assert [read_eval_log(str(file)).status for file in again] == ["success"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("how", ["swallows", "children"])
def test_a_set_ends_though_the_loop_does_not(tmp_path: Path, backend: str, how: str) -> None:
    what = ["eval-set", "hung.py", "--model", "mock/model"]
    with _started(tmp_path, backend, what, how=how, time_limit=0.3) as process:
        output = _ends(process)

    assert process.returncode == 0, output
    assert _log(tmp_path).status == "success"
    assert (tmp_path / "logs" / "logs.json").is_file()


CALL = """
from hung import hung
from proctor import eval
options = {"model": "mock/model", "display": "none", "log_dir": "logs", "async_backend": BACKEND, "stop_timeout": 1}
[log] = eval(hung(HOW, time_limit=0.3), **options)
print("RETURNED", log.status, len(log.samples))
[log] = eval(hung("none", where="nowhere"), **options)
print("AGAIN", log.status)
"""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("how", ["swallows", "shielded", "children"])
def test_eval_returns_though_the_loop_does_not_end(tmp_path: Path, backend: str, how: str) -> None:
    # given a program that goes on after its evaluation
    shutil.copy(SUPPORT / "hung.py", tmp_path)
    code = CALL.replace("BACKEND", repr(backend)).replace("HOW", repr(how))
    command = [sys.executable, "-c", code]
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        output = _ends(process)
    # then it has its logs, can evaluate again, and ends in silence
    assert process.returncode == 0, output
    assert output.splitlines() == ["HANGS", "RETURNED success 3", "AGAIN success"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("display", ["rich", "plain"])
def test_ctrl_c_in_a_terminal_ends_a_run_with_a_hung_solver(tmp_path: Path, backend: str, display: str) -> None:
    shutil.copy(SUPPORT / "hung.py", tmp_path)
    command = [sys.executable, "-m", "proctor", "eval", "hung.py", "--model", "mock/model", "--display", display]
    command += ["--log-dir", "logs", "--async-backend", backend, "--max-samples", "1"]

    with (
        PtyRun(command, width=100, height=30, env=os.environ, cwd=str(tmp_path)) as run,
        killed_after(run.process, ENDS),
    ):
        run.wait_until(lambda shown: "HANGS" in run.raw, "the solver")
        run.process.send_signal(signal.SIGINT)
        code = run.finish()

    assert code == 130, run.raw
    assert run.raw.rfind("\x1b[?25h") >= run.raw.rfind("\x1b[?25l")  # the cursor is shown again
    log = _log(tmp_path)
    assert log.status == "cancelled"
    assert {sample.id for sample in log.samples or () if sample.scores} == {1}


STARVED = """
import anyio, trio._core._thread_cache as cache
from anyio import to_thread
from proctor import Task, task
from proctor.dataset import Sample
from proctor.solver import solver

handle = cache.WorkerThread._handle_job

def starve(self):
    if self._job[2] is not None and "dies" in self._job[2]:
        raise MemoryError
    handle(self)

cache.WorkerThread._handle_job = starve

def dies():
    pass

@solver
def waits():
    async def solve(state, generate):
        if state.sample_id == 2:
            import trio
            await trio.to_thread.run_sync(dies, thread_name="dies")
        return state
    return solve

@task
def starved():
    return Task(dataset=[Sample(input="q", id=number) for number in (1, 2)], solver=waits())
"""


def test_a_run_that_waits_for_a_thread_which_died_without_memory_is_ended(tmp_path: Path) -> None:
    # given a worker of trio's that dies before it can say so: nothing would ever wake its sample
    (tmp_path / "starved.py").write_text(STARVED)
    command = [sys.executable, "-m", "proctor", "eval", "starved.py", "--model", "mock/model", "--display", "plain"]
    command += ["--log-dir", "logs", "--async-backend", "trio", "--max-samples", "1"]
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        output, _ = process.communicate(timeout=ENDS)
    # then the process ends, and the log has what there is
    assert process.returncode == 1, output
    assert "no memory left" in output
    log = _log(tmp_path)
    assert log.status == "error"
    assert {sample.id for sample in log.samples or () if sample.error is None} == {1}
