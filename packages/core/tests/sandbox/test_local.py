"""The local sandbox, with real processes and files."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from pathlib import Path

import anyio
import pytest
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


async def test_directories_of_dead_processes_are_reaped(temporary: Path) -> None:
    async with await anyio.open_process(["true"]) as process:
        await process.wait()
    dead = temporary / f"proctor-sandbox-{process.pid}-x"
    alive = temporary / f"proctor-sandbox-{os.getpid()}-x"
    other = temporary / "proctor-sandbox-notes-x"
    for folder in (dead, alive, other):
        folder.mkdir()
    assert await LocalSandboxDriver().reap(None) == [str(dead)]
    assert sorted(temporary.iterdir()) == sorted([alive, other])
