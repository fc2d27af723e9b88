"""A container that many checks share, each in a folder of its own: to start one for each takes minutes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import anyio

from proctor.contracts import SandboxEnvironment
from proctor_sandbox_docker._box import Container, DockerSandbox
from proctor_sandbox_docker._driver import DockerDriver
from proctor_sandbox_docker._engine import Engine

IMAGE = "proctor-busybox:latest"

_numbers = itertools.count(1)


@contextmanager
def shared_container(engine: Engine) -> Iterator[Container]:
    """A container of ``engine``, until the end of the block."""
    driver = DockerDriver(engine)

    async def start() -> dict[str, SandboxEnvironment]:
        await driver.task_init("shared", IMAGE)
        return await driver.sample_init("shared", IMAGE, {})

    async def remove(envs: dict[str, SandboxEnvironment]) -> None:
        await driver.sample_cleanup(envs, False)
        await driver.task_cleanup("shared", IMAGE, True)

    envs = anyio.run(start)
    [box] = envs.values()
    assert isinstance(box, DockerSandbox)
    try:
        yield box.container
    finally:
        anyio.run(remove, envs)


async def folder_in(container: Container, engine: Engine) -> DockerSandbox:
    """A sandbox in a new folder of ``container``, by an engine that has not been opened."""
    await engine.open()
    box = DockerSandbox(engine, replace(container, working_dir=f"/{next(_numbers)}"))
    made = await box.exec(["mkdir", box.container.working_dir], cwd="/")
    assert made.success, made.stderr
    return box
