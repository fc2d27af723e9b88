from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from proctor.concurrency import run_gates, subprocess, subprocess_gate
from proctor.contracts import OutputLimitExceededError

pytestmark = pytest.mark.anyio


async def test_output_exit_code_input_environment_and_folder(tmp_path: Path) -> None:
    script = "import os, sys; print(sys.stdin.read() + os.environ['X'] + os.getcwd()); sys.exit('e')"
    result = await subprocess([sys.executable, "-c", script], input="in-", env={"X": "x-"}, cwd=tmp_path)
    assert (result.success, result.returncode, result.stderr) == (False, 1, "e\n")
    assert result.stdout.strip() == f"in-x-{tmp_path.resolve()}"


async def test_a_string_goes_through_the_shell_and_a_list_does_not() -> None:
    assert (await subprocess("echo $((1 + 1))")).stdout == "2\n"
    assert (await subprocess(["echo", "$((1 + 1))"])).stdout == "$((1 + 1))\n"


async def test_a_command_that_closes_its_input_early_is_no_error() -> None:
    result = await subprocess(["true"], input=b"x" * 10_000_000)
    assert result.success


async def test_a_timeout_is_raised_after_the_whole_group_is_dead(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(TimeoutError):
        await subprocess(f"sleep 600 & echo $! >> {pids}; echo $$ >> {pids}; wait", timeout=0.5)
    for pid in pids.read_text().split():
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().split()[2] == "Z"


async def test_a_child_that_outlives_its_parent_and_holds_the_pipes_dies_at_the_timeout(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(TimeoutError):
        await subprocess(f"sleep 600 & echo $! > {pids}", timeout=0.5)
    state = Path(f"/proc/{pids.read_text().strip()}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


async def test_output_above_the_limit_ends_the_command() -> None:
    with pytest.raises(OutputLimitExceededError) as raised:
        await subprocess("yes", output_limit=1000)
    assert raised.value.truncated_output == "y\n" * 500


async def test_bytes_are_kept_as_they_are() -> None:
    everything = bytes(range(256))
    assert (await subprocess(["cat"], input=everything, text=False)).stdout == everything


async def test_commands_wait_for_the_gate(tmp_path: Path) -> None:
    with run_gates(max_subprocesses=1):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(subprocess, [sys.executable, "-c", "pass"])
        assert subprocess_gate().peak == 1


async def test_cancelling_kills_the_command(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    os.mkfifo(tmp_path / "ready")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(subprocess, f"echo $$ > {pid_file}; echo > {tmp_path}/ready; sleep 600")
        await anyio.to_thread.run_sync((tmp_path / "ready").read_text)
        tasks.cancel_scope.cancel()
    state = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"
