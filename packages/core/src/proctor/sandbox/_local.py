"""A local sandbox: a directory on this machine. Nothing confines what runs in it."""

from __future__ import annotations

import getpass
import os
import pwd
import shlex
from pathlib import Path
from typing import Literal, overload

from anyio import to_thread

from proctor.concurrency import kill_groups, kill_marked, subprocess
from proctor.contracts import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxUserUnsupportedError,
)
from proctor.schema import quick_id

__all__ = ["MAX_EXEC_OUTPUT", "MAX_READ_FILE", "LocalSandbox", "shell_in", "user_name"]

MAX_EXEC_OUTPUT = 10 * 1024**2
"""Bytes that a command may write to standard output, and to standard error."""
MAX_READ_FILE = 100 * 1024**2
"""Bytes of a file that ``read_file`` takes in."""


class LocalSandbox(SandboxEnvironment):
    """A directory in which commands of this machine run, as the user who runs the evaluation.

    Args:
        directory: the working directory; relative paths start there. Absolute paths are this machine's own.
        mark: something unique that its processes are found by; made up when not given.
    """

    def __init__(self, directory: Path, mark: str = "") -> None:
        self.directory = directory
        self.background: set[int] = set()
        """Process groups of commands that left something running, such as a server for the commands after it."""
        self.mark = mark or quick_id()

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> ExecResult[str]:
        """Run a command, inside the run's subprocess gate. Bytes that are no UTF-8 are replaced in what it wrote.

        What it leaves in the background goes on, and is killed with the sandbox.
        """
        _check_user(user)
        try:
            result: ExecResult[str] = await subprocess(
                cmd,
                input=input,
                cwd=self._path(cwd or "."),
                env=env,
                timeout=timeout,
                output_limit=MAX_EXEC_OUTPUT,
                background=self.background,
                mark=self.mark,
            )
        except OutputLimitExceededError as error:
            raise OutputLimitExceededError("10 MiB", error.truncated_output) from None
        return result

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Read a file, in a thread."""
        data = await to_thread.run_sync(_read, self._path(file))
        return data.decode("utf-8") if text else data

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file, in a thread."""
        data = contents.encode("utf-8") if isinstance(contents, str) else contents
        await to_thread.run_sync(_write, self._path(file), data)

    async def end(self) -> None:
        """Kill all that its commands left in the background (on Linux also what left their process groups)."""
        await kill_groups(self.background)
        await kill_marked(self.mark)

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        """A shell in the directory."""
        _check_user(user)
        return shell_in(self.directory)

    def _path(self, file: str) -> Path:
        return self.directory / file  # an absolute path stays what it is


def shell_in(directory: Path) -> SandboxConnection:
    """A shell in ``directory``."""
    return SandboxConnection(type="local", command=f"cd {shlex.quote(str(directory))} && ${{SHELL:-sh}}")


def _check_user(user: str | None) -> None:
    if user is None or user in (str(os.geteuid()), user_name()):
        return
    raise SandboxUserUnsupportedError(
        f"the local sandbox runs commands as {user_name()}, not as {user!r}: use a container (--sandbox docker)"
    )


def user_name() -> str:
    """Who runs the evaluation."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container may run as a number without a name
        return getpass.getuser()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_READ_FILE + 1)
    if len(data) > MAX_READ_FILE:
        raise OutputLimitExceededError("100 MiB", None)
    return data


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
