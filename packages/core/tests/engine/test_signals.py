"""Runs that are stopped from outside: what they leave behind, and their exit codes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from child_processes import running

from proctor.log import read_eval_log

TASK = """
import sys
import anyio
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import solver

@solver
def first_two_then_wait(shield: bool):
    async def solve(state, generate):
        if state.sample_id <= 2:
            return await generate(state)
        print("WAITING", flush=True)
        with anyio.CancelScope(shield=shield):
            await anyio.sleep_forever()
    return solve

@task
def waits(shield: bool = False):
    samples = [Sample(input="q", target="Default", id=n) for n in range(1, 6)]
    return Task(dataset=samples, solver=first_two_then_wait(shield), scorer=includes())
"""


@contextmanager
def _started(tmp_path: Path, backend: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "waits.py").write_text(TASK)
    command = [sys.executable, "-m", "proctor", "eval", "waits.py", "--model", "mock/model", "--max-samples", "3"]
    command += ["--display", "none", "--log-dir", "logs", "--async-backend", backend, *options]
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for _ in range(3):
            line = process.stdout.readline()
            assert "WAITING" in line, line
        yield process


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_ends_the_run_in_an_orderly_way(
    tmp_path: Path, backend: str, number: signal.Signals, code: int
) -> None:
    with _started(tmp_path, backend) as process:
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == code, output
    assert "Traceback" not in output
    [file] = (tmp_path / "logs").glob("*.eval")
    log = read_eval_log(str(file))
    assert log.status == "cancelled"
    assert f"proctor eval-retry logs/{file.name}" in output
    assert log.results is not None
    assert (log.results.total_samples, log.results.completed_samples) == (5, 2)
    assert log.results.metadata is not None
    assert log.results.metadata["proctor"]["outcomes"]["cancelled"] == 3
    states = {sample.id: sample.error.message if sample.error else "" for sample in log.samples or ()}
    assert states == {1: "", 2: "", 3: "CancelledError()", 4: "CancelledError()", 5: "CancelledError()"}


def test_the_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with _started(tmp_path, "asyncio", "-T", "shield=true") as process:
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert "Stopping" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    [file] = (tmp_path / "logs").glob("*.eval")
    place = f"logs/{file.name}"
    assert "Stopped at once" in output
    assert f"`proctor eval-retry {place}`" in output and f"`proctor log recover {place}`" in output


BLOCKS = """
import time
from proctor import Task, task
from proctor.dataset import Sample
from proctor.solver import solver

@solver
def blocks():
    async def solve(state, generate):
        print("WAITING", flush=True)
        time.sleep(3600)
    return solve

@task
def waits():
    return Task(dataset=[Sample(input="q", id=n) for n in range(3)], solver=blocks())
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_code_that_blocks_the_event_loop_does_not_keep_the_second_signal_out(tmp_path: Path, backend: str) -> None:
    (tmp_path / "blocks.py").write_text(BLOCKS)
    words = f"eval blocks.py --model mock/model --display none --log-dir logs --async-backend {backend}"
    command = [sys.executable, "-m", "proctor", *words.split()]
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        assert "WAITING" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert "Stopping" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
