"""Twenty runs of one task in one second make twenty logs."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from child_processes import running

from proctor.log import list_eval_logs, read_eval_log

RUNS = 20
# One process after another would not be there at the same time: each says that it is ready and waits for the word.
SCRIPT = """
import sys
from log_samples import sample, spec, stats
from proctor.log import LogWriter
from proctor.schema import EvalPlan

print("ready", flush=True)
sys.stdin.readline()
same = spec(1, created="2026-11-29T11:19:30+00:00", task="same", task_id="SAME")
writer = LogWriter.open("logs", same, EvalPlan())
writer.write(sample(1))
writer.finish("success", None, stats())
print(writer.location, flush=True)
"""


@pytest.mark.slow
def test_runs_of_one_second_have_logs_of_their_own(tmp_path: Path) -> None:
    # given processes whose logs would all have the same name
    path = str(Path(__file__).parents[1] / "support")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r})\n{SCRIPT}"]
    with ExitStack() as stack:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": tmp_path}
        processes = [stack.enter_context(running(command, **pipes)) for _ in range(RUNS)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        # when they begin together
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        locations = [process.communicate(timeout=60)[0].strip() for process in processes]
    # then each has a log of its own, which is whole
    assert len(set(locations)) == RUNS
    found = list_eval_logs(str(tmp_path / "logs"))
    assert {Path(info.name).name for info in found} == {Path(location).name for location in locations}
    assert {info.task_id for info in found} == {"SAME"}
    assert all(read_eval_log(info).status == "success" for info in found)
