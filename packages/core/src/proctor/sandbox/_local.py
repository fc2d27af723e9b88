"""The local sandbox: a temporary directory on this machine. Nothing confines what runs in it."""

from __future__ import annotations

import getpass
import logging
import os
import pwd
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
    SandboxConnection,
    SandboxDriver,
    SandboxEnvironment,
    SandboxUserUnsupportedError,
)

__all__ = ["MAX_EXEC_OUTPUT", "MAX_READ_FILE", "LocalSandbox", "LocalSandboxDriver"]

MAX_EXEC_OUTPUT = 10 * 1024**2
"""Bytes that a command may write to standard output, and to standard error."""
MAX_READ_FILE = 100 * 1024**2
"""Bytes of a file that ``read_file`` takes in."""

_PREFIX = "proctor-sandbox-"
_log = logging.getLogger("proctor.sandbox")


class LocalSandbox(SandboxEnvironment):
    """A directory in which commands of this machine run, as the user who runs the evaluation.

    Args:
        directory: the working directory; relative paths start there. Absolute paths are this machine's own.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.background: set[int] = set()
        """Process groups of commands that left something running, such as a server for the commands after it."""

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

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        """A shell in the directory."""
        _check_user(user)
        return SandboxConnection(type="local", command=f"cd {self.directory} && ${{SHELL:-sh}}")

    def _path(self, file: str) -> Path:
        return self.directory / file  # an absolute path stays what it is


def _check_user(user: str | None) -> None:
    if user is None or user in (str(os.geteuid()), _user_name()):
        return
    raise SandboxUserUnsupportedError(
        f"the local sandbox runs commands as {_user_name()}, not as {user!r}: use a container (--sandbox docker)"
    )


def _user_name() -> str:
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


class LocalSandboxDriver(SandboxDriver):
    """Makes local sandboxes."""

    def __init__(self) -> None:
        self._warned = False

    async def task_init(self, task: str, config: Any) -> None:
        """Warn, once a run, that nothing protects this machine."""
        if not self._warned:
            self._warned = True
            _log.warning(
                "sandbox 'local' runs what the model writes on this machine, unconfined, as %s; "
                "use a container (--sandbox docker) for models that you don't trust",
                _user_name(),
            )

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """Make a temporary directory."""
        # The owner's process id is in the name, so that `reap` knows whose directories are left over.
        prefix = f"{_PREFIX}{os.getpid()}-"
        return {
            "default": LocalSandbox(await to_thread.run_sync(lambda: Path(tempfile.mkdtemp(prefix=prefix)).resolve()))
        }

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """Kill what still runs and remove the directory."""
        for each in envs.values():
            if isinstance(each, LocalSandbox):
                with anyio.CancelScope(shield=True):
                    await kill_groups(each.background)
                    await to_thread.run_sync(_remove, each.directory)

    async def reap(self, run_id: str | None) -> list[str]:
        """Remove the directories of processes that are gone."""
        return await to_thread.run_sync(_reap)


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, onerror=_make_writable)


def _make_writable(function: Any, path: str, error: Any) -> None:
    """What a command made read-only is removed as well; what can't be is left, and said so."""
    try:
        os.chmod(os.path.dirname(path), 0o700)
        os.chmod(path, 0o700)
        function(path)
    except OSError as failure:
        _log.warning("sandbox directory not removed: %s", failure)


def _reap() -> list[str]:
    removed = []
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = directory.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdecimal() and not process_exists(int(owner)) and directory.stat().st_uid == os.geteuid():
            _remove(directory)
            removed.append(str(directory))
    return removed
