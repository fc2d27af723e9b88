"""Another process that makes a sandbox and is killed."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from typing import Any

import anyio

from proctor_testkit._sandbox_checks import TASK, DriverOpener

__all__ = ["dead_owner"]

_PATIENCE = 100.0  # seconds that it has to make a sandbox


def dead_owner(opener: DriverOpener, config: Any) -> str:
    """The working directory of a sandbox whose owner was killed by SIGKILL.

    Raises:
        RuntimeError: if the other process could not make one.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_own, args=(opener, config, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        kind, said = ours.recv() if ours.poll(_PATIENCE) else ("error", "no answer")
    except EOFError:
        kind, said = "error", "it died"
    finally:
        process.kill()
        process.join(_PATIENCE)
        process.close()
        ours.close()
    if kind != "made":
        raise RuntimeError(f"another process could not make a sandbox: {said}")
    return str(said)


def _own(opener: DriverOpener, config: Any, pipe: Connection) -> None:
    try:
        anyio.run(_make, opener, config, pipe)
    except Exception as error:
        pipe.send(("error", f"{type(error).__name__}: {error}"))


async def _make(opener: DriverOpener, config: Any, pipe: Connection) -> None:
    driver = opener()
    await driver.task_init(TASK, config)
    envs = await driver.sample_init(TASK, config, {})
    box = next(iter(envs.values()))
    await box.write_file("left", "over")
    pipe.send(("made", (await box.exec(["pwd"])).stdout.strip()))
    await anyio.sleep_forever()
