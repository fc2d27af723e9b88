"""A disk that is full: the run waits and says so, its log can be read, and it goes on or ends when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Literal

import pytest
from child_processes import running
from pty_run import PtyRun
from run_status import ask_run, until

from proctor.cli import main
from proctor.log import read_eval_log, recover_eval_log

pytestmark = pytest.mark.slow

TASK = """
import random
import anyio
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import solver

@solver
def noise():
    async def solve(state, generate):
        state.output.completion = random.Random(state.sample_id).randbytes(10_000).hex()
        await anyio.sleep(0.1)  # as a model would take: what is done at once is written at once
        return state
    return solve

@task
def large():
    return Task(dataset=[Sample(input="q", target="a", id=n) for n in range(1, 31)], solver=noise(), scorer=includes())
"""
EVAL = "eval large.py --model mock/model --max-samples 2 --log-dir disk/logs"


def _eval(tmp_path: Path, *options: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """An evaluation in a process of its own, whose screen is plain."""
    command = [sys.executable, "-m", "proctor", *EVAL.split(), "--display", "plain", *options]
    return running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Disk:
    """A file system of 8 MB."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, format: str) -> None:
        """Leave room for the first few samples of a log only."""
        room = os.statvfs(self.folder)
        self._ballast.write_bytes(bytes(room.f_bavail * room.f_bsize - (500_000 if format == "json" else 120_000)))

    def free(self) -> None:
        """Make space, as a person would."""
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "large.py").write_text(TASK)
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
        made = subprocess.run(mount, capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if made.returncode:
        pytest.skip(f"this user may not mount a tmpfs: {made.stderr.strip()}")
    with ExitStack() as stack:
        # Lazily: a process that a failed test left behind may still have its log open.
        stack.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True, timeout=60)
        yield Disk(folder)


def _stalled() -> dict[str, Any]:
    """The unit of the only run, once it waits for space."""

    def look() -> dict[str, Any] | None:
        [unit] = ask_run(ask="status")["run"]["units"]
        return unit if unit["stalled"] else None

    return until(look)


def _readable(unit: dict[str, Any], folder: Path) -> int:
    """How many samples can be read; all that were counted as done are among them."""
    log = read_eval_log(str(folder / unit["location"]))
    found = [sample.id for sample in log.samples or ()]
    assert log.status == "started"
    assert 0 < unit["done"] <= len(found) < 30
    assert len(set(found)) == len(found)
    return len(found)


@pytest.mark.parametrize(
    ("backend", "format"),
    [("asyncio", "eval"), ("trio", "json")],
)
def test_a_full_disk_is_waited_for(
    disk: Disk, tmp_path: Path, capsys: pytest.CaptureFixture[str], backend: str, format: Literal["eval", "json"]
) -> None:
    # given a run whose disk is full
    disk.fill(format)
    with _eval(tmp_path, "--log-format", format, "--async-backend", backend) as process:
        unit = _stalled()
        # then it says so to those who watch and to those who ask, and the log can be read
        assert process.stdout is not None
        assert any("waits: no space left for disk/logs/" in line for line in process.stdout)
        assert main(["status"]) == 0
        assert "waits: no space left for disk/logs/" in capsys.readouterr().out
        _readable(unit, tmp_path)
        # when there is space, then it goes on to its end
        disk.free()
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "goes on" in output
    log = read_eval_log(str(tmp_path / unit["location"]))
    assert (log.status, [sample.id for sample in log.samples or ()]) == ("success", list(range(1, 31)))


def test_a_terminal_shows_that_the_disk_is_full_while_it_is(disk: Disk, tmp_path: Path) -> None:
    disk.fill("eval")
    command = [sys.executable, "-m", "proctor", *EVAL.split(), "--display", "rich"]
    with PtyRun(command, width=100, height=30, env=dict(os.environ), cwd=str(tmp_path)) as run:
        run.wait_for("waits: no space left")
        disk.free()
        assert run.finish() == 0
    assert "no space left" not in run.terminal.text


@pytest.mark.parametrize(
    ("number", "code", "format"),
    [(signal.SIGTERM, 143, "eval"), (signal.SIGINT, 130, "json")],
)
def test_a_signal_ends_the_wait(
    disk: Disk, tmp_path: Path, number: signal.Signals, code: int, format: Literal["eval", "json"]
) -> None:
    # given a run whose disk is full
    disk.fill(format)
    with _eval(tmp_path, "--log-format", format) as process:
        unit = _stalled()
        done = _readable(unit, tmp_path)
        # when it is told to end
        process.send_signal(number)
        output, _ = process.communicate(timeout=30)
    # then it does, says what to do, and what was acknowledged is there
    assert process.returncode == code, output
    assert "Traceback" not in output
    assert f"proctor log recover {unit['location']}" in output
    assert _readable(unit, tmp_path) == done
    recovered = recover_eval_log(tmp_path / unit["location"], tmp_path / f"recovered.{format}")
    assert len(read_eval_log(recovered).samples or ()) == done


def test_a_disk_that_is_full_at_the_start_is_waited_for_too(disk: Disk, tmp_path: Path) -> None:
    (disk.folder / "rest").write_bytes(bytes(8 << 20))
    with _eval(tmp_path) as process:
        _stalled()
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert list((disk.folder / "logs").iterdir()) == []
