"""Runs of the peer that were interrupted: what a person gets who opens their logs with our tools."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from child_processes import running
from deadlines import killed_after

from proctor.log import BadLogError, read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
from proctor.schema import EvalLog

pytestmark = pytest.mark.peer

ANSWERED = 30  # of 50
PATIENCE = 60  # seconds


@contextmanager
def peer_run(folder: Path) -> Iterator[tuple[subprocess.Popen[Any], Path]]:
    """A run of the peer that has written its first 30 samples, and its log."""
    inspect = Path(os.environ["PROCTOR_PEER_PYTHON"]).with_name("inspect")
    shutil.copy(Path(__file__).with_name("peer_task.py"), folder)  # the peer wants relative paths
    words = "eval peer_task.py --model mockllm/model --display none --log-dir logs"
    words += f" --max-samples 4 --log-buffer 1 -T until={ANSWERED}"
    with (
        (folder / "said.txt").open("w") as said,
        running([str(inspect), *words.split()], cwd=folder, stdout=said, stderr=said) as process,
        killed_after(process, PATIENCE),
    ):
        found: list[Path] = []
        while not found:
            assert process.poll() is None, (folder / "said.txt").read_text()
            found = [path for path in folder.glob("logs/*.eval") if _written(path) == ANSWERED]
        yield process, found[0]


def _written(path: Path) -> int:
    try:
        return len(read_eval_log_sample_summaries(str(path)))
    except BadLogError:  # it is just made
        return 0


def test_the_log_of_a_killed_run_of_the_peer_is_read_and_recovered(peer: Any, tmp_path: Path) -> None:
    # given a run of the peer that was killed
    with peer_run(tmp_path) as (process, log):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)

    # then we read what it had written
    mine, theirs = read_eval_log(str(log)), peer.ask("full", path=log)
    assert mine.status == theirs["status"] == "started"
    assert _ids(mine) == sorted(one["id"] for one in theirs["samples"]) == list(range(1, ANSWERED + 1))
    assert read_eval_log_sample(str(log), 7, 1).output.completion == "Default"

    # and recover it, with metrics, for both
    done = subprocess.run(
        [sys.executable, "-m", "proctor", "log", "recover", str(log), "--json"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    [recovered] = log.parent.glob("*-recovered.eval")
    mine, theirs = read_eval_log(str(recovered)), peer.ask("full", path=recovered)
    assert mine.status == theirs["status"] == "error"
    assert _ids(mine) == sorted(one["id"] for one in theirs["samples"]) == list(range(1, ANSWERED + 1))
    assert mine.results is not None
    values = {name: metric.value for name, metric in mine.results.scores[0].metrics.items()}
    assert values["accuracy"] == pytest.approx(20 / 30)
    assert json.dumps({name: metric["value"] for name, metric in theirs["results"]["scores"][0]["metrics"].items()})
    assert mine.results.total_samples == theirs["results"]["total_samples"] == 50


def test_the_log_of_a_cancelled_run_of_the_peer_is_read(peer: Any, tmp_path: Path) -> None:
    with peer_run(tmp_path) as (process, log):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(PATIENCE)

    mine, theirs = read_eval_log(str(log)), peer.ask("full", path=log)
    assert mine.status == theirs["status"] == "cancelled"
    assert _ids(mine) == sorted(one["id"] for one in theirs["samples"])
    done = {int(one.id) for one in mine.samples or () if one.error is None}
    assert done == set(range(1, ANSWERED + 1))


def _ids(log: EvalLog) -> list[int]:
    return sorted(int(one.id) for one in log.samples or ())
