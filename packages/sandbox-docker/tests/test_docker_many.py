"""Many sandboxes at once, and those of runs that were killed."""

from __future__ import annotations

import os
import sys

import anyio
import pytest
from anyio import to_thread
from child_processes import running

from proctor.contracts import SandboxEnvironment
from proctor_sandbox_docker._driver import DockerDriver

IMAGE = "proctor-busybox:latest"
MANY = 200
pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("engine_address")]

OWNER = """
import sys
import anyio
from proctor_sandbox_docker._driver import DockerDriver

async def main(count):
    driver = DockerDriver()
    await driver.task_init("many", sys.argv[2])
    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(driver.sample_init, "many", sys.argv[2], {})
    print("up", flush=True)
    await anyio.sleep_forever()

anyio.run(main, int(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_many_sandboxes_are_up_at_once_with_one_network_at_most() -> None:
    driver = DockerDriver()
    await driver.task_init("many", IMAGE)
    said: dict[int, str] = {}
    made: dict[int, dict[str, SandboxEnvironment]] = {}

    async def one(number: int) -> None:
        made[number] = await driver.sample_init("many", IMAGE, {})

    async def speak(number: int) -> None:
        said[number] = (await next(iter(made[number].values())).exec(["echo", str(number)])).stdout

    try:
        for step in (one, speak):
            async with anyio.create_task_group() as group:
                for number in range(MANY):
                    group.start_soon(step, number)
        ours = [each for each in await driver.sandboxes() if each.owner and each.owner.pid == os.getpid()]
    finally:
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for envs in made.values():
                    group.start_soon(driver.sample_cleanup, envs, False)

    assert said == {number: f"{number}\n" for number in range(MANY)}
    assert MANY <= len(ours) <= MANY + 1
    assert sum(each.id.startswith("network/") for each in ours) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_a_killed_run_left_is_taken_away_and_a_living_one_keeps_its_own() -> None:
    driver = DockerDriver()
    envs = await driver.sample_init("living", IMAGE, {})
    with running([sys.executable, "-c", OWNER, "20", IMAGE], stdout=-1, text=True) as owner:
        assert owner.stdout is not None
        assert await to_thread.run_sync(owner.stdout.readline) == "up\n"
        theirs = [each.id for each in await driver.sandboxes() if each.owner and each.owner.pid == owner.pid]
        owner.kill()
        await to_thread.run_sync(owner.wait)

    removed = await driver.reap(None)

    assert len(theirs) == 20 and set(theirs) <= set(removed)
    assert not set(theirs) & {each.id for each in await driver.sandboxes()}
    [box] = envs.values()
    assert (await box.exec(["echo", "alive"])).stdout == "alive\n"
    await driver.sample_cleanup(envs, False)
