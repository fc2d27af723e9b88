"""Commands that do not end, containers that do, and an engine that is restarted or hangs."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from proctor.contracts import ExecTimeoutError, SandboxBrokenError, SandboxEnvironment, UsageError
from proctor_sandbox_docker._address import Address
from proctor_sandbox_docker._box import DockerSandbox
from proctor_sandbox_docker._driver import DockerDriver
from proctor_sandbox_docker._engine import Engine

IMAGE = "proctor-busybox:latest"
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="sockets of Unix"),
    pytest.mark.usefixtures("collected"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@asynccontextmanager
async def sandbox(config: object = IMAGE, address: Address | None = None) -> AsyncIterator[DockerSandbox]:
    """A container, which is taken away at the end where it still can be."""
    driver = DockerDriver(Engine(address))
    await driver.task_init("trouble", config)
    envs = await driver.sample_init("trouble", config, {})
    [box] = envs.values()
    assert isinstance(box, DockerSandbox)
    try:
        yield box
    finally:
        with anyio.move_on_after(60, shield=True):
            await driver.sample_cleanup(envs, False)


async def processes(box: SandboxEnvironment) -> str:
    """The commands that run in it."""
    return (await box.exec(["ps", "-o", "args"])).stdout


STUBBORN = (
    "trap '' TERM INT HUP; "
    "setsid sh -c 'trap \"\" TERM INT HUP; echo child; sleep 4321 & sleep 4321' & "
    "echo begun; while :; do sleep 4321; done"
)


@pytest.mark.usefixtures("engine_address")
async def test_what_ignores_signals_and_has_left_its_session_is_dead_when_the_time_is_over() -> None:
    async with sandbox() as box:
        with anyio.fail_after(9 + 30), pytest.raises(ExecTimeoutError) as raised:  # 30: other work of the machine
            await box.exec(["sh", "-c", STUBBORN], timeout=1)

        assert "4321" not in await processes(box)
        assert "begun" in raised.value.stdout


@pytest.mark.usefixtures("engine_address")
async def test_a_command_of_another_user_is_ended_too_and_nothing_else_is() -> None:
    async with sandbox() as box:
        await box.exec(["sh", "-c", "sleep 1234 > /dev/null 2>&1 &"])

        with pytest.raises(ExecTimeoutError):
            await box.exec(["sh", "-c", "setsid sleep 4321 & sleep 4321"], user="nobody", timeout=1)

        left = await processes(box)
        assert "4321" not in left
        assert "1234" in left, "what another command left in the background goes on"


@pytest.mark.usefixtures("engine_address")
async def test_where_no_process_can_be_started_a_command_is_ended_all_the_same() -> None:
    config = {"image": IMAGE, "pids_limit": 12}
    all_of_them = "for n in 1 2 3 4 5 6 7; do sleep 4321 & done; sleep 4321; sleep 4321"
    async with sandbox(config) as box:
        await box.write_file("kept", "here")

        with pytest.raises(ExecTimeoutError):
            await box.exec(["sh", "-c", all_of_them], timeout=2)

        assert "4321" not in await processes(box)
        assert await box.read_file("kept") == "here"


@pytest.mark.usefixtures("engine_address")
async def test_what_holds_the_output_open_in_the_background_does_not_hold_the_command_up() -> None:
    async with sandbox() as box:
        with anyio.fail_after(60):
            result = await box.exec(["sh", "-c", "echo started; sleep 300 & exit 3"])

        assert (result.returncode, result.stdout) == (3, "started\n")


@pytest.mark.usefixtures("engine_address")
async def test_a_container_that_ends_while_a_command_runs_is_told_with_its_state_and_its_last_words() -> None:
    async with sandbox({"image": IMAGE, "command": "sh -c 'echo last words; exec sleep 4000'"}) as box:
        async with anyio.create_task_group() as group:
            group.start_soon(kill_when_it_runs, box)
            with pytest.raises(SandboxBrokenError) as raised:
                await box.exec(["sh", "-c", "echo > begun; sleep 600"])

        assert "exited (137)" in raised.value.state
        assert "last words" in raised.value.logs


async def kill_when_it_runs(box: DockerSandbox) -> None:
    """Kill the container itself once the command in it has begun."""
    with anyio.fail_after(60):
        while not (await box.exec(["sh", "-c", "[ -e begun ]"])).success:
            await anyio.lowlevel.checkpoint()
    await box.engine.call("kill", lambda client: client.kill(box.container.id))


@pytest.mark.usefixtures("engine_address")
async def test_a_container_that_runs_out_of_memory_says_so() -> None:
    config = {"image": IMAGE, "mem_limit": "16m", "init": False, "command": "sh -c 'sleep 2; tail /dev/zero'"}
    async with sandbox(config) as box:
        with pytest.raises(SandboxBrokenError) as raised:
            await box.exec(["sleep", "600"], timeout=120)

        assert "out of memory" in raised.value.state


@pytest.mark.usefixtures("engine_address")
async def test_a_container_that_is_gone_is_told_as_such() -> None:
    async with sandbox() as box:
        await box.engine.call("remove", lambda client: client.remove_container(box.container.id, force=True))

        for use in (lambda: box.exec(["true"]), lambda: box.read_file("f"), lambda: box.write_file("f", "x")):
            with pytest.raises(SandboxBrokenError, match=r"no such container|gone"):
                await use()


@pytest.mark.parametrize("host", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:9", "ssh://somebody@host", "ftp://x"])
async def test_no_engine_is_said_before_anything_else_with_what_to_do(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)

    with pytest.raises(UsageError, match="DOCKER_HOST") as raised:
        await DockerDriver().check(IMAGE)

    assert host in str(raised.value) and "\n" not in str(raised.value)


async def test_an_engine_that_hangs_does_not_hold_up_the_time_of_a_command(between: Any) -> None:
    async with sandbox(address=between.address) as box:
        between.hang()
        try:
            with anyio.fail_after(60), pytest.raises(SandboxBrokenError, match="did not begin"):
                await box.exec(["sleep", "600"], timeout=1)
        finally:
            between.resume()


async def test_a_connection_that_breaks_is_no_result_and_nothing_is_run_twice(between: Any) -> None:
    async with sandbox(address=between.address) as box:
        async with anyio.create_task_group() as group:
            group.start_soon(cut_when_it_runs, box, between)
            with pytest.raises(SandboxBrokenError):
                await box.exec(["sh", "-c", "echo once >> runs; sleep 600"], timeout=100)

        between.resume()
        assert await box.read_file("runs") == "once\n"


async def test_a_connection_that_breaks_while_the_engine_goes_on_is_no_result_either(between: Any) -> None:
    async with sandbox(address=between.address) as box:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(cut_when_it_runs, box, between, refuse=False))
            with anyio.fail_after(100), pytest.raises(SandboxBrokenError, match="what it wrote is lost"):
                await box.exec(["sh", "-c", "echo once >> runs; sleep 4321; echo lost"])

        assert await box.read_file("runs") == "once\n"
        assert "4321" not in await processes(box)


@pytest.mark.usefixtures("engine_address")
async def test_a_command_may_close_its_output_and_go_on() -> None:
    async with sandbox() as box:
        result = await box.exec(["sh", "-c", "echo said; exec >&- 2>&-; sleep 3; exit 5"])

        assert (result.returncode, result.stdout) == (5, "said\n")


async def cut_when_it_runs(box: DockerSandbox, between: Any, refuse: bool = True) -> None:
    """Break the connections once the command has begun; ``refuse``: there are no others then."""
    with anyio.fail_after(60):
        while not (await box.exec(["sh", "-c", "[ -e runs ]"])).success:
            await anyio.lowlevel.checkpoint()
    between.cut(refuse=refuse)


async def test_what_was_cancelled_in_a_call_is_not_left_behind(between: Any) -> None:
    driver = DockerDriver(Engine(between.address))
    await driver.task_init("cancelled", IMAGE)
    between.hang()
    with anyio.move_on_after(0.5) as scope:
        await driver.sample_init("cancelled", IMAGE, {})
    assert scope.cancelled_caught

    between.resume()

    assert await nothing_is_left(driver)


async def nothing_is_left(driver: DockerDriver) -> bool:
    """Wait until the engine has made, and its thread removed, what was under way."""
    quiet = 0
    with anyio.move_on_after(60):
        while quiet < 10:
            found = [each for each in await driver.sandboxes() if each.owner and each.owner.pid == os.getpid()]
            quiet = 0 if found else quiet + 1
            await anyio.sleep(0.1)
    return quiet >= 10
