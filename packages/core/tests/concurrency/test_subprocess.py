from __future__ import annotations

import os
import subprocess as std
import sys
import uuid
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from child_processes import running

from proctor.concurrency import (
    kill_groups,
    marked_processes,
    run_gates,
    subprocess,
    subprocess_gate,
)
from proctor.contracts import OutputLimitExceededError

pytestmark = pytest.mark.anyio


def is_dead(pids: str) -> bool:
    """Whether all processes are gone, or zombies that nobody has asked for (a container's first process may not)."""
    asked = std.run(["ps", "-o", "stat=", "-p", ",".join(pids.split())], capture_output=True, text=True, timeout=60)
    return all(state.startswith("Z") for state in asked.stdout.split())


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
    assert is_dead(pids.read_text())


async def test_a_descendant_that_ignores_sigterm_is_dead_after_the_timeout(tmp_path: Path) -> None:
    (tmp_path / "stubborn").write_text("trap '' TERM HUP\necho $$ > pid\nwhile :; do sleep 600; done\n")
    (tmp_path / "parent").write_text("sh ./stubborn &\nwait\n")
    with pytest.raises(TimeoutError):
        await subprocess("sh ./parent & wait", cwd=tmp_path, timeout=2)
    assert is_dead((tmp_path / "pid").read_text())


async def test_a_command_is_over_when_it_ends_whoever_holds_its_pipes(tmp_path: Path) -> None:
    background: set[int] = set()
    script = f"sleep 600 & echo $! > {tmp_path}/pid; echo out; echo err >&2; exit 3"
    with anyio.fail_after(60):
        result = await subprocess(script, timeout=50, background=background)
    pid = (tmp_path / "pid").read_text()
    try:
        assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")
        assert not is_dead(pid)
        assert len(background) == 1
    finally:
        await kill_groups(background)
    assert is_dead(pid)


async def test_a_command_that_ended_in_time_did_not_time_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last output of a command is waited for after its deadline too."""
    from proctor.concurrency import _subprocess as module

    monkeypatch.setattr(module, "_GRACE", 1.0)
    background: set[int] = set()
    try:
        assert (await subprocess("sleep 600 & echo out", timeout=0.9, background=background)).stdout == "out\n"
    finally:
        await kill_groups(background)


async def test_large_output_of_a_command_that_leaves_a_child_is_whole() -> None:
    background: set[int] = set()
    try:
        result = await subprocess("sleep 600 & yes | head -n 1000000; echo end", background=background)
        assert result.stdout == "y\n" * 1_000_000 + "end\n"
    finally:
        await kill_groups(background)


async def test_input_that_a_child_in_the_background_does_not_read_keeps_nobody() -> None:
    background: set[int] = set()
    try:
        # With job control off, a shell gives children in the background an empty input, unless they name another.
        with anyio.fail_after(60):
            result = await subprocess("exec 3<&0; sleep 600 <&3 & echo out", input="x" * 10**6, background=background)
        assert result.stdout == "out\n"
    finally:
        await kill_groups(background)


async def test_nothing_is_noted_of_a_command_that_leaves_nothing() -> None:
    background: set[int] = set()
    await subprocess("sleep 0 & wait", background=background)
    assert background == set()


async def test_a_group_whose_number_is_a_living_process_is_not_ours_to_kill() -> None:
    """Numbers are given again: the first process of a group that we noted has ended."""
    with running(["sleep", "600"]) as stranger:
        await kill_groups([stranger.pid])
        assert stranger.poll() is None


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
    assert is_dead(pid_file.read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="the system must tell what is open, and runs")
async def test_a_command_that_is_cancelled_while_it_starts_leaves_no_process_and_no_pipe() -> None:
    await subprocess(["true"])
    mark, before = uuid.uuid4().hex, set(os.listdir("/proc/self/fd"))
    for steps in range(20):
        async with anyio.create_task_group() as group:
            group.start_soon(partial(subprocess, "sleep 600 & sleep 600", mark=mark))
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    assert marked_processes(mark) == []
    assert set(os.listdir("/proc/self/fd")) - before == set()
