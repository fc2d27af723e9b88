"""Sandboxes that are folders of this machine: the whole contract, and no protection at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, overload

import anyio
from anyio import to_thread
from proctor.concurrency import kill_groups, subprocess
from proctor.contracts import (
    ExecResult,
    OutputLimitExceededError,
    RunningSandbox,
    SandboxBrokenError,
    SandboxConnection,
    SandboxDriver,
    SandboxEnvironment,
    SandboxOwner,
    SandboxUserUnsupportedError,
)
from proctor.sandbox import sandbox_owner

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
        """One sandbox. It says whose it is, so that what a killed run left can be told from what is in use."""
        return {"default": await to_thread.run_sync(_make, sandbox_owner())}

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """End what still runs, then remove the folder."""
        with anyio.CancelScope(shield=True):  # also of a sample that is cancelled nothing is to stay
            for env in envs.values():
                if isinstance(env, AcmeSandbox):
                    await kill_groups(env.background)
                    await to_thread.run_sync(_remove, env.folder.parent)

    async def sandboxes(self) -> list[RunningSandbox]:
        """What any process has made and is still there: `reap` and `proctor sandbox` go by it."""
        return await to_thread.run_sync(lambda: [_running(folder) for folder in _folders()])

    async def remove(self, ids: Sequence[str]) -> list[str]:
        """Remove these."""
        removed = []
        for folder in await to_thread.run_sync(_folders):
            if folder.name in ids:
                await to_thread.run_sync(_remove, folder)
                if folder.exists():
                    raise SandboxBrokenError(f"{folder} could not be removed")
                removed.append(folder.name)
        return removed


def _make(owner: SandboxOwner) -> AcmeSandbox:
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    (folder / "labels.json").write_text(json.dumps(owner.labels()), "utf-8")
    inside = folder / "work"
    inside.mkdir()
    return AcmeSandbox(inside)


def _folders() -> list[Path]:
    return sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))


def _running(folder: Path) -> RunningSandbox:
    try:
        owner = SandboxOwner.from_labels(json.loads((folder / "labels.json").read_text("utf-8")))
        created = datetime.fromtimestamp(folder.stat().st_ctime, UTC)
    except (OSError, ValueError):  # it is being made or removed
        owner, created = None, None
    enter = SandboxConnection(type="acme", command=f"cd {folder}/work && sh")
    return RunningSandbox(folder.name, owner, "a folder", created, enter)


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
