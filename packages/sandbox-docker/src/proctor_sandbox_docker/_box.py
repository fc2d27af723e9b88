"""A container as a sandbox."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

import anyio
from docker import APIClient
from docker.errors import APIError

from proctor.contracts import (
    ExecResult,
    ExecTimeoutError,
    OutputLimitExceededError,
    SandboxBrokenError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxUserUnsupportedError,
)
from proctor.sandbox import MAX_EXEC_OUTPUT, MAX_READ_FILE
from proctor_sandbox_docker._broken import container_broke, state_of
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._exec import Command, NotBegun, Outcome
from proctor_sandbox_docker._files import put_file, read_archive, stat_path, too_large

__all__ = ["Container", "DockerSandbox", "connection_to"]

T = TypeVar("T")

_FILE_SECONDS = 300.0
_PING_SECONDS = 10.0
_VIRTUAL = ("/proc", "/sys", "/dev")
_KILLED = 128 + 9
_NOT_THE_COMMAND = ("stopped container", "init process is not running", "namespace path")
"""In what is said of a command that came when its container was about to end; the command may be a fine one."""
_SETTLE = (0.05, 0.1, 0.2, 0.4)  # seconds between looks at a container whose command was killed

# $1: the file. What `sh` says of it stands in the error; the exit codes are read below.
# It reads its input to the end in any case: Podman puts an error of its own in place of ours when it is left.
_WRITE = """
fail() { cat > /dev/null; exit "$1"; }
[ ! -d "$1" ] || fail 71
case $1 in */*) [ -d "${1%/*}/" ] || mkdir -p -- "${1%/*}/" || fail 73 ;; esac
cat > "$1" || fail 73
"""
_READ = """
[ ! -d "$1" ] || exit 71
exec cat < "$1"
"""
_IS_DIRECTORY = 71
_PLAIN = {"LC_ALL": "C"}  # messages as they are read here


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs.

    Args:
        id: of the engine's.
        name: by which people know it.
        service: name of the service of its project.
        working_dir: where commands and relative paths start.
        user: that commands run as; empty = root.
        in_memory: where file systems are mounted that an archive does not see.
        ports: container ports (``"8080/tcp"``) and the host's.
    """

    id: str
    name: str
    service: str
    working_dir: str
    user: str = ""
    in_memory: tuple[str, ...] = ()
    ports: Mapping[str, int] = field(default_factory=dict)

    @property
    def as_root(self) -> bool:
        """Whether commands run as root unless told otherwise."""
        return self.user.partition(":")[0] in ("", "0", "root")


class DockerSandbox(SandboxEnvironment):
    """A container in which commands run, and its files.

    Args:
        engine: that has it.
        container: what is known of it.
        project: what all containers of the sample have in common.
    """

    def __init__(self, engine: Engine, container: Container, project: str = "") -> None:
        self.engine = engine
        self.container = container
        self.project = project

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> ExecResult[str]:
        """Run a command. Bytes that are no UTF-8 are replaced in what it wrote; a signal ``n`` gives ``-n``."""
        command = self._command(cmd, input, cwd=self._path(cwd or "."), env=env, user=user)
        try:
            outcome = await self._run(command, timeout)
        except NotBegun as error:
            raise await self._refused(error.reason, cmd, cwd, user) from error
        stdout, stderr = _text(outcome.stdout), _text(outcome.stderr)
        if outcome.full:
            await command.kill()
            raise OutputLimitExceededError("10 MiB", stderr if outcome.full == 2 else stdout)
        if outcome.code == _KILLED:
            await self._check_alive()  # what is killed with its container has no result
        # The engine has no other way to tell of a signal than shells have.
        code = 128 - outcome.code if 128 < outcome.code < 128 + 65 else outcome.code
        return ExecResult(success=code == 0, returncode=code, stdout=stdout, stderr=stderr)

    def _command(self, cmd: list[str], input: str | bytes | None, *, cwd: str, **options: Any) -> Command:
        data = input.encode() if isinstance(input, str) else input
        limit = options.pop("limit", MAX_EXEC_OUTPUT)
        return Command(self.engine, self.container.id, cmd, stdin=data, workdir=cwd, limit=limit, **options)

    async def _run(self, command: Command, timeout: float | None) -> Outcome:
        """Run it to its end, or end it and all that it started."""
        try:
            with anyio.move_on_after(timeout):
                return await command.run()
        except anyio.get_cancelled_exc_class():
            await command.kill(5.0)
            raise
        except SandboxBrokenError as error:
            raise await self._broke(error) from error
        except APIError as error:
            raise await self._broke(error) from error
        if not command.begun:
            await self._check_answers(timeout)
        written = [_text(part) for part in command.so_far()]
        try:
            await command.kill()
        except SandboxBrokenError as error:
            raise await self._broke(error) from error
        raise ExecTimeoutError(timeout, *written)

    async def _broke(self, error: Exception) -> SandboxBrokenError:
        said = error.args[0] if isinstance(error, SandboxBrokenError) else getattr(error, "explanation", None) or error
        return await container_broke(self.engine, self.container.id, f"container {self.container.name}: {said}")

    async def _check_answers(self, timeout: float | None) -> None:
        """A command may have had too little time to begin, or an engine that does not answer."""
        try:
            await self.engine.call("ping", lambda client: client.ping(), seconds=_PING_SECONDS)
        except SandboxBrokenError as error:
            raise await container_broke(
                self.engine,
                self.container.id,
                f"container {self.container.name} did not begin a command within {timeout:g} s: {error}",
            ) from error

    async def _check_alive(self) -> None:
        """Find out whether a command was killed with its container, of which the engine may hear a little later."""
        for pause in (0.0, *_SETTLE):
            await anyio.sleep(pause)
            state = await state_of(self.engine, self.container.id)
            if state is None or not state.get("Running"):
                raise await container_broke(
                    self.engine, self.container.id, f"container {self.container.name} ended while a command ran"
                )

    async def _refused(self, reason: str, cmd: list[str], cwd: str | None = None, user: str | None = None) -> Exception:
        """What the engine's message about a command that it could not begin means."""
        said = reason.lower()
        if user is not None and ("unable to find user" in said or "no matching entries in passwd" in said):
            return SandboxUserUnsupportedError(
                f"there is no user {user!r} in container {self.container.name}: {reason}"
            )
        if any(sign in said for sign in _NOT_THE_COMMAND):
            await self._check_alive()
            return await self._broke(NotBegun(f"a command could not be begun: {reason}"))
        what = f"{cmd[0] if cmd else ''!r}: {reason}"
        if "chdir" in said or "cwd" in said or "working directory" in said or "workdir" in said:
            what = f"working directory {self._path(cwd or '.')!r}: {reason}"
            if "not a directory" in said:
                return NotADirectoryError(what)
        if "permission denied" in said or "is a directory" in said:
            return PermissionError(what)
        if "no such file or directory" in said or "executable file not found" in said:
            return FileNotFoundError(what)
        return await self._broke(NotBegun(f"a command could not be begun: {reason}"))

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Read a file."""
        path = self._path(file)
        data = None
        if self._by_archive(path):
            data = await self._read_archive(path)
        if data is None:
            data = await self._read_by_shell(path)
        return data.decode("utf-8") if text else data

    async def _read_archive(self, path: str) -> bytes | None:
        """What is in a file; ``None`` when the engine sees no such file, though the container may."""
        container = self.container.id
        try:
            return await self._call("read a file", lambda client: read_archive(client, container, path))
        except FileNotFoundError:
            return None

    async def _read_by_shell(self, path: str) -> bytes:
        command = self._command(["sh", "-c", _READ, "read", path], None, cwd="/", env=_PLAIN, limit=MAX_READ_FILE)
        try:
            outcome = await self._run(command, _FILE_SECONDS)
        except NotBegun as error:
            refused = await self._refused(error.reason, ["sh"])
            if isinstance(refused, FileNotFoundError):  # without a shell the engine's word is all there is
                raise FileNotFoundError(path) from None
            raise refused from error
        if outcome.full:
            await command.kill()
            raise too_large()
        self._check_shell(outcome, path)
        return outcome.stdout

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file. A new one belongs to the container's user; one that is there keeps its owner and mode."""
        path = self._path(file)
        data = contents.encode("utf-8") if isinstance(contents, str) else contents
        if self._by_archive(path) and await self._write_new(path, data):
            return
        command = self._command(["sh", "-c", _WRITE, "write", path], data, cwd="/", env=_PLAIN)
        try:
            outcome = await self._run(command, _FILE_SECONDS)
        except NotBegun as error:
            raise await self._refused(error.reason, ["sh"]) from error
        self._check_shell(outcome, path)

    async def _write_new(self, path: str, data: bytes) -> bool:
        """Whether there was no such file, and now there is."""
        container = self.container.id

        def write(client: APIClient) -> bool:
            try:
                found = stat_path(client, container, path)
            except FileNotFoundError:
                put_file(client, container, path, data)
                return True
            if found.kind == "directory":
                raise IsADirectoryError(path)
            return False

        try:
            return await self._call("write a file", write)
        except APIError:
            return False  # read-only, or something in the way: the shell can say what it is

    async def _call(self, what: str, work: Callable[[APIClient], T]) -> T:
        try:
            return await self.engine.call(what, work, seconds=_FILE_SECONDS)
        except SandboxBrokenError as error:
            raise await self._broke(error) from error

    def _check_shell(self, outcome: Outcome, path: str) -> None:
        said = _text(outcome.stderr).strip()
        if outcome.code == 0:
            return
        lower = said.lower()
        if outcome.code == _IS_DIRECTORY or "is a directory" in lower:
            raise IsADirectoryError(path)
        if "no such file" in lower or "nonexistent" in lower:
            raise FileNotFoundError(path)
        if "permission denied" in lower or "not permitted" in lower or "read-only" in lower or "input/output" in lower:
            raise PermissionError(f"{path}: {said}")
        if "not a directory" in lower:
            raise NotADirectoryError(f"{path}: {said}")
        raise OSError(f"{path}: {said or f'exit code {outcome.code}'}")

    def _by_archive(self, path: str) -> bool:
        hidden = (*_VIRTUAL, *self.container.in_memory)
        path = posixpath.normpath(path)
        return self.container.as_root and not any(path == each or path.startswith(f"{each}/") for each in hidden)

    def _path(self, file: str) -> str:
        return posixpath.join(self.container.working_dir, file)

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        """A shell in the container."""
        return connection_to(self.engine, self.container.name, self.container.ports, user)

    def __repr__(self) -> str:
        return f"<docker {self.container.name}>"


def connection_to(
    engine: Engine, name: str, ports: Mapping[str, int] | None = None, user: str | None = None
) -> SandboxConnection:
    """How a person gets into a container that runs."""
    program = ["podman"] if engine.podman else ["docker"]
    if not engine.address.default:
        program += ["--url" if engine.podman else "-H", engine.address.url]
    options = ["--user", user] if user else []
    return SandboxConnection(
        type="docker",
        command=shlex.join([*program, "exec", "-it", *options, name, "sh"]),
        ports=ports or None,
        container=name,
        vscode_command=("remote-containers.attachToRunningContainer", name),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
