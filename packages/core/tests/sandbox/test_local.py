"""The local sandbox, with real processes and files."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from child_processes import running
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.contracts import OutputLimitExceededError, SandboxUserUnsupportedError
from proctor.sandbox import MAX_EXEC_OUTPUT, LocalSandbox, LocalSandboxDriver
from proctor.sandbox import _local as local

pytestmark = pytest.mark.anyio


@pytest.fixture
def box(tmp_path: Path) -> LocalSandbox:
    return LocalSandbox(tmp_path)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def is_dead(pid: int) -> bool:
    """Whether a process is gone, or a zombie that nobody has asked for (a container's first process may not)."""
    asked = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, timeout=60)
    return asked.stdout.strip()[:1] in ("", "Z")


async def test_a_command_gets_what_it_is_given(box: LocalSandbox) -> None:
    (box.directory / "sub").mkdir()
    script = 'cat; echo "$A"; pwd; echo err >&2; exit 3'
    result = await box.exec(["sh", "-c", script], input="in\n", cwd="sub", env={"A": "1"})
    assert (result.success, result.returncode) == (False, 3)
    assert result.stdout == f"in\n1\n{box.directory}/sub\n"
    assert result.stderr == "err\n"


async def test_input_may_be_bytes_and_is_empty_by_default(box: LocalSandbox) -> None:
    assert (await box.exec(["cat"], input="é".encode())).stdout == "é"
    assert (await box.exec(["cat"])).stdout == ""


async def test_output_that_is_no_text_is_replaced(box: LocalSandbox) -> None:
    assert (await box.exec(["printf", r"a\377b"])).stdout == "a�b"


async def test_a_signal_gives_a_negative_return_code(box: LocalSandbox) -> None:
    assert (await box.exec(["sh", "-c", "kill -9 $$"])).returncode == -signal.SIGKILL


async def test_what_can_not_be_run_is_an_error(box: LocalSandbox) -> None:
    with pytest.raises(FileNotFoundError):
        await box.exec(["no-such-command"])
    with pytest.raises(PermissionError):
        await box.exec(["/etc/passwd"])
    with pytest.raises(FileNotFoundError):
        await box.exec(["pwd"], cwd="no-such-folder")


async def test_a_timeout_leaves_nothing_running(box: LocalSandbox) -> None:
    script = "sh -c 'echo $$ > child; exec sleep 600' & echo $$ > parent; wait"
    with pytest.raises(TimeoutError):
        await box.exec(["sh", "-c", script], timeout=0.5)
    for name in ("parent", "child"):
        assert is_dead(int(await box.read_file(name)))


async def test_too_much_output_is_an_error_that_holds_its_beginning(
    box: LocalSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_EXEC_OUTPUT == 10 * 1024**2
    monkeypatch.setattr(local, "MAX_EXEC_OUTPUT", 1000)
    with pytest.raises(OutputLimitExceededError, match="10 MiB") as caught:
        await box.exec(["sh", "-c", "yes | head -n 100000"])
    assert caught.value.truncated_output is not None
    assert caught.value.truncated_output.startswith("y\ny\n")


async def test_commands_run_as_the_present_user_only(box: LocalSandbox) -> None:
    assert (await box.exec(["id", "-u"], user=str(os.geteuid()))).stdout.strip() == str(os.geteuid())
    with pytest.raises(SandboxUserUnsupportedError, match="not as 'nobody-here'"):
        await box.exec(["id"], user="nobody-here")


async def test_text_keeps_its_line_ends(box: LocalSandbox) -> None:
    await box.write_file("deep/er/file.txt", "a\r\nb\nc\r")
    assert await box.read_file("deep/er/file.txt") == "a\r\nb\nc\r"


@given(data=st.binary(max_size=300))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_bytes_come_back_as_they_were(box: LocalSandbox, data: bytes) -> None:
    await box.write_file("file.bin", data)
    assert await box.read_file("file.bin", text=False) == data


async def test_files_that_can_not_be_had_raise_what_the_contract_says(
    box: LocalSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    (box.directory / "folder").mkdir()
    await box.write_file("binary", b"\xff\xfe")
    with pytest.raises(FileNotFoundError):
        await box.read_file("missing")
    with pytest.raises(IsADirectoryError):
        await box.read_file("folder")
    with pytest.raises(IsADirectoryError):
        await box.write_file("folder", "x")
    with pytest.raises(UnicodeDecodeError):
        await box.read_file("binary")
    monkeypatch.setattr(local, "MAX_READ_FILE", 1)
    with pytest.raises(OutputLimitExceededError, match="100 MiB"):
        await box.read_file("binary", text=False)


async def test_an_absolute_path_is_this_machine_s_own(box: LocalSandbox, tmp_path: Path) -> None:
    await box.write_file(str(tmp_path / "there"), "x")
    assert await box.read_file("there") == "x"


async def test_a_connection_is_a_shell_in_the_directory(box: LocalSandbox) -> None:
    connection = await box.connection()
    assert connection.type == "local"
    assert str(box.directory) in connection.command


async def test_each_sample_has_a_directory_of_its_own_that_is_removed(temporary: Path) -> None:
    driver = LocalSandboxDriver()
    one, two = [await driver.sample_init("task", None, {}) for _ in range(2)]
    await one["default"].exec(["sh", "-c", "mkdir -p a/b; touch a/b/c; chmod 500 a/b; chmod 500 a"])
    assert len(list(temporary.iterdir())) == 2
    await driver.sample_cleanup(one, interrupted=False)
    await driver.sample_cleanup(two, interrupted=True)
    assert list(temporary.iterdir()) == []


async def test_a_server_in_the_background_serves_later_commands_and_ends_with_the_sandbox(temporary: Path) -> None:
    driver = LocalSandboxDriver()
    made = await driver.sample_init("task", None, {})
    box = made["default"]
    serve = "while :; do if [ -e asked ]; then touch served; fi; sleep 0.01; done"
    try:
        started = await box.exec(["bash", "-c", f"({serve}) & echo $! > pid; echo started"], timeout=60)
        assert started.stdout == "started\n"
        pid = int(await box.read_file("pid"))
        await box.exec(["sh", "-c", "touch asked; until [ -e served ]; do sleep 0.01; done"], timeout=60)
        assert not is_dead(pid)
    finally:
        await driver.sample_cleanup(made, interrupted=False)
    assert is_dead(pid)


async def test_that_it_is_unconfined_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    driver = LocalSandboxDriver()
    with caplog.at_level(logging.WARNING, "proctor.sandbox"):
        await driver.task_init("one", None)
        await driver.task_init("two", None)
    [record] = caplog.records
    assert "unconfined" in record.getMessage()


DAEMON = "setsid sh -c 'echo $$ > pid; exec sleep 600' > /dev/null 2>&1 & until [ -s pid ]; do sleep 0.01; done"
OWNER = f"""
import sys, anyio
from proctor.sandbox import LocalSandboxDriver, configure_sandboxes

DAEMON = {DAEMON!r}

async def main():
    with configure_sandboxes(run_id=sys.argv[1], keep=len(sys.argv) > 2):
        made = await LocalSandboxDriver().sample_init("task", None, dict())
        await made["default"].exec(["sh", "-c", DAEMON])
        print(made["default"].directory, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@contextmanager
def owner(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that has a sandbox, in which something runs, and the folder that it is in."""
    with running([sys.executable, "-c", OWNER, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip()).parent


@pytest.mark.slow
async def test_what_a_killed_run_left_is_reaped_with_its_processes_and_a_living_one_s_stays(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(temporary))
    driver = LocalSandboxDriver()
    with owner("run1") as (killed, left), owner("run2") as (_, alive):
        killed.kill()
        await anyio.to_thread.run_sync(killed.wait)
        pid = int((left / "work" / "pid").read_text())
        assert not is_dead(pid)

        assert await driver.reap(None) == [left.name]

        assert is_dead(pid)
        assert list(temporary.iterdir()) == [alive]
        [told] = await driver.sandboxes()
        assert told.owner is not None
        assert (told.id, told.owner.run_id, told.state) == (alive.name, "run2", "1 process")
        assert told.connection is not None
        assert str(alive) in told.connection.command
        assert await driver.remove(["proctor-sandbox-none", alive.name]) == [alive.name]
    assert await driver.sandboxes() == []


async def test_what_a_person_keeps_is_not_reaped_unless_its_run_is_named(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(temporary))
    driver = LocalSandboxDriver()
    with owner("run1", "keep") as (process, kept):
        process.kill()
        await anyio.to_thread.run_sync(process.wait)
    assert await driver.reap(None) == []
    assert await driver.reap("run1") == [kept.name]


@pytest.mark.parametrize("text", ["", "[]", '{"mark": 1, "labels": {}}', '{"mark": "x", "labels": {"proctor.pid": 1}}'])
async def test_a_folder_that_does_not_say_whose_it_is_is_shown_and_left_alone(temporary: Path, text: str) -> None:
    folder = temporary / "proctor-sandbox-1-x"
    folder.mkdir()
    (folder / "owner.json").write_text(text)
    driver = LocalSandboxDriver()
    assert [(each.id, each.owner) for each in await driver.sandboxes()] == [(folder.name, None)]
    assert await driver.reap(None) == []
    assert await driver.remove([folder.name]) == [folder.name]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found by their environment")
@pytest.mark.parametrize(
    "leave",
    ["setsid sh -c '{}' &", "setsid sh -c '{}' & disown", "env -i setsid /bin/sh -c '{}' &"],
    ids=["setsid", "orphan", "without environment"],
)
async def test_a_child_that_left_its_process_group_is_dead_after_a_timeout(box: LocalSandbox, leave: str) -> None:
    stubborn = 'trap \\"\\" TERM HUP INT; echo $$ > pid; while :; do sleep 0.05; done'.replace("\\", "")
    script = f"trap '' TERM; {leave.format(stubborn)}\nuntil [ -s pid ]; do sleep 0.01; done; while :; do sleep 1; done"
    with pytest.raises(TimeoutError):
        await box.exec(["bash", "-c", script], timeout=2)
    assert is_dead(int(await box.read_file("pid")))


async def test_a_daemon_in_the_background_ends_with_the_sandbox(temporary: Path) -> None:
    driver = LocalSandboxDriver()
    made = await driver.sample_init("task", None, {})
    box = made["default"]
    await box.exec(["sh", "-c", DAEMON], timeout=60)
    pid = int(await box.read_file("pid"))
    assert not is_dead(pid)
    await driver.sample_cleanup(made, interrupted=False)
    assert is_dead(pid)
