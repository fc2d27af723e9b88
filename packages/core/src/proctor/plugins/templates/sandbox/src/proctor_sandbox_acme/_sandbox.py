"""Sandboxes that are folders of this machine: the whole contract, and no protection at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal, overload

import anyio
from anyio import to_thread
from proctor.concurrency import kill_groups, process_exists, subprocess
from proctor.contracts import (
    ExecResult,
    OutputLimitExceededError,
    SandboxDriver,
    SandboxEnvironment,
    SandboxUserUnsupportedError,
)

EXEC_LIMIT = 10 * 1024**2  # bytes of either stream of a command
FILE_LIMIT = 100 * 1024**2  # bytes of a file that is read
PREFIX = "acme-sandbox-"


class AcmeSandbox(SandboxEnvironment):
    """One folder.

    Args:
        folder: commands start there, and relative paths are in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.background: set[int] = set()  # process groups of commands that left something running

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> ExecResult[str]:
        """Run a command; the core's helper kills all of it when its time is over or the sample is cancelled."""
        if user is not None:
            raise SandboxUserUnsupportedError(f"commands run as the user of this process, not as {user!r}")
        try:
            result: ExecResult[str] = await subprocess(
                cmd,
                input=input,
                cwd=self.folder / (cwd or "."),
                env=env,
                timeout=timeout,
                output_limit=EXEC_LIMIT,
                background=self.background,
            )
        except OutputLimitExceededError as error:
            raise OutputLimitExceededError("10 MiB", error.truncated_output) from None
        return result

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Read a file, in a thread: a disk may be slow, and the event loop serves all samples."""
        data = await to_thread.run_sync(_read, self.folder / file)
        return data.decode("utf-8") if text else data

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file and the folders above it."""
        data = contents.encode("utf-8") if isinstance(contents, str) else contents
        await to_thread.run_sync(_write, self.folder / file, data)


class AcmeDriver(SandboxDriver):
    """Makes a folder for each sample."""

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """One sandbox. Its owner's process id is in its name, so that what a killed run left can be told apart."""
        folder = await to_thread.run_sync(lambda: tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        return {"default": AcmeSandbox(Path(folder))}

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """End what still runs, then remove the folder."""
        with anyio.CancelScope(shield=True):  # also of a sample that is cancelled nothing is to stay
            for env in envs.values():
                if isinstance(env, AcmeSandbox):
                    await kill_groups(env.background)
                    await to_thread.run_sync(_remove, env.folder)

    async def reap(self, run_id: str | None) -> list[str]:
        """Remove the folders of processes that are gone."""
        return await to_thread.run_sync(_reap)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise OutputLimitExceededError("100 MiB")
    return data


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _reap() -> list[str]:
    left: list[str] = []
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not process_exists(int(owner)):
            _remove(folder)
            left.append(str(folder))
    return left
