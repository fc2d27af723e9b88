"""What a sandbox implements: a driver that makes sandboxes, and the sandboxes themselves.

A driver is made once a run and provider; it makes, for each sample, one or more named sandboxes (the first is the
default one), and takes them away again. All methods are awaited on the event loop and must not block it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

if TYPE_CHECKING:
    from proctor.contracts._sandbox_owner import RunningSandbox

__all__ = [
    "ExecResult",
    "ExecTimeoutError",
    "OutputLimitExceededError",
    "SandboxBrokenError",
    "SandboxConnection",
    "SandboxDriver",
    "SandboxEnvironment",
    "SandboxUserUnsupportedError",
]

T = TypeVar("T", str, bytes)


@dataclass(frozen=True, slots=True)
class ExecResult(Generic[T]):
    """How a command ended, and what it wrote.

    Args:
        success: whether the return code is 0.
        returncode: of the command; a signal ``n`` that ended it gives ``-n``.
        stdout: what it wrote to standard output.
        stderr: what it wrote to standard error.

    Example:
        >>> result = ExecResult(success=False, returncode=-9, stdout="", stderr="out of memory")
        >>> result.success
        False
    """

    success: bool
    returncode: int
    stdout: T
    stderr: T


class OutputLimitExceededError(Exception):
    """A command wrote, or a file held, more than may be taken in.

    Attributes:
        limit_str: the limit as a person reads it, such as ``10 MiB``.
        truncated_output: what was read before the limit, or ``None`` when nothing was.

    Example:
        >>> from proctor.contracts import OutputLimitExceededError
        >>> error = OutputLimitExceededError("10 MiB", truncated_output="line 1, line 2")
        >>> str(error)
        'the output is larger than the limit of 10 MiB'
    """

    def __init__(self, limit_str: str, truncated_output: str | None = None) -> None:
        super().__init__(f"the output is larger than the limit of {limit_str}")
        self.limit_str = limit_str
        self.truncated_output = truncated_output


class ExecTimeoutError(TimeoutError):
    """A command was killed when its time was over.

    Attributes:
        stdout: what it had written until then.
        stderr: the same, of standard error.

    Example:
        >>> from proctor.contracts import ExecTimeoutError
        >>> error = ExecTimeoutError(5, stdout="line 1")
        >>> str(error), error.stdout
        ('not done after 5 s', 'line 1')
    """

    def __init__(self, seconds: float | None, stdout: str = "", stderr: str = "") -> None:
        super().__init__("the command did not end in time" if seconds is None else f"not done after {seconds:g} s")
        self.stdout = stdout
        self.stderr = stderr


class SandboxUserUnsupportedError(RuntimeError):
    """A command was to run as a user that the sandbox can't change to.

    Example:
        >>> from proctor.contracts import SandboxUserUnsupportedError
        >>> str(SandboxUserUnsupportedError("a toy has one user"))
        'a toy has one user'
    """


class SandboxBrokenError(RuntimeError):
    """The infrastructure failed, not the command: the engine does not answer, or the sandbox is gone.

    It is no command's result and is not shown to the model. It ends the sample with an error; ``--retry-on-error``
    begins it again in a fresh sandbox.

    Args:
        message: what happened, and what a person can do.
        state: what the engine says of the sandbox now, such as ``exited (137), out of memory``.
        logs: the last lines that the sandbox has printed.

    Example:
        >>> from proctor.contracts import SandboxBrokenError
        >>> error = SandboxBrokenError("the container is gone", state="exited (137)", logs="starting\\nout of memory")
        >>> str(error)
        'the container is gone; state: exited (137); last lines of its log: starting | out of memory'
    """

    def __init__(self, message: str, state: str = "", logs: str = "") -> None:
        super().__init__(message, state, logs)
        self.state = state
        self.logs = logs

    def __str__(self) -> str:
        lines = " | ".join(line.strip() for line in self.logs.splitlines() if line.strip())
        text = str(self.args[0])
        text += f"; state: {self.state}" if self.state else ""
        return text + (f"; last lines of its log: {lines}" if lines else "")


@dataclass(frozen=True, slots=True)
class SandboxConnection:
    """How a person gets into a sandbox.

    Args:
        type: what kind of sandbox it is, such as ``docker``.
        command: a shell command line that opens a shell inside.
        ports: container ports (``"8080/tcp"``) and the host ports that lead to them.
        container: the name under which the provider knows the sandbox.
        vscode_command: what opens it in VS Code: a command of the editor, and its arguments.

    Example:
        >>> from proctor.contracts import SandboxConnection
        >>> way = SandboxConnection(type="docker", command="docker exec -it box7 sh", ports={"80/tcp": 8080})
        >>> way.command
        'docker exec -it box7 sh'
    """

    type: str
    command: str
    ports: Mapping[str, int] | None = None
    container: str | None = None
    vscode_command: tuple[str, ...] | None = field(default=None)


class SandboxEnvironment(ABC):
    """One machine, container or directory in which a sample's commands run.

    Relative paths, and commands without ``cwd``, start in the sandbox's working directory.

    Example:
        >>> import anyio
        >>> from proctor.contracts import ExecResult, SandboxEnvironment
        >>> class Toy(SandboxEnvironment):
        ...     def __init__(self):
        ...         self.files = {}
        ...
        ...     async def exec(self, cmd, input=None, cwd=None, env=None, user=None, timeout=None):
        ...         if cmd[0] != "echo":
        ...             raise FileNotFoundError(cmd[0])
        ...         return ExecResult(success=True, returncode=0, stdout=" ".join(cmd[1:]), stderr="")
        ...
        ...     async def read_file(self, file, text=True):
        ...         if file not in self.files:
        ...             raise FileNotFoundError(file)
        ...         return self.files[file].decode() if text else self.files[file]
        ...
        ...     async def write_file(self, file, contents):
        ...         self.files[file] = contents.encode() if isinstance(contents, str) else contents
        >>> toy = Toy()
    """

    @abstractmethod
    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> ExecResult[str]:
        """Run ``cmd`` and wait for its end; what it leaves in the background goes on until the sandbox is taken away.

        Args:
            cmd: the program and its arguments; no shell is involved.
            input: what the command reads from its standard input (nothing by default: an empty input).
            cwd: working directory, relative to the sandbox's own.
            env: variables added to the sandbox's environment.
            user: user name or id to run as.
            timeout: seconds after which the command and all its descendants are killed.

        Raises:
            TimeoutError: the timeout passed; everything that the command started is dead by then. An
                ``ExecTimeoutError`` has what it wrote.
            FileNotFoundError: there is no such command, or no such ``cwd``.
            UnicodeDecodeError: the output is no UTF-8 (a provider may replace what can't be decoded instead).
            SandboxUserUnsupportedError: the sandbox can't run commands as ``user``.
            PermissionError: the command may not be executed (or not by ``user``).
            OutputLimitExceededError: more than 10 MiB on standard output or standard error.
            SandboxBrokenError: not the command failed but what it runs in (the other methods raise it, too). A
                command is never run a second time.

        Example:
            >>> anyio.run(toy.exec, ["echo", "all", "well"])
            ExecResult(success=True, returncode=0, stdout='all well', stderr='')
            >>> anyio.run(toy.exec, ["rm", "notes.txt"])
            Traceback (most recent call last):
                ...
            FileNotFoundError: rm
        """

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    @abstractmethod
    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """The contents of ``file``: decoded as UTF-8 with newlines as they are, or as bytes when ``text`` is false.

        Raises:
            FileNotFoundError: there is no such file.
            IsADirectoryError: ``file`` is a directory.
            PermissionError: the file may not be read.
            UnicodeDecodeError: ``text`` was asked for and the file is no UTF-8.
            OutputLimitExceededError: the file is larger than 100 MiB.

        Example:
            >>> toy.files["notes.txt"] = b"all well"
            >>> anyio.run(toy.read_file, "notes.txt")
            'all well'
            >>> anyio.run(toy.read_file, "notes.txt", False)
            b'all well'
        """

    @abstractmethod
    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write ``contents`` to ``file``, replacing what it held; parent directories are made.

        Raises:
            PermissionError: the file may not be written.
            IsADirectoryError: ``file`` is a directory.

        Example:
            >>> anyio.run(toy.write_file, "notes.txt", "all well")
            >>> anyio.run(toy.write_file, "picture.png", bytes([137, 80, 78, 71]))
        """

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        """How a person gets into this sandbox (as ``user``).

        Raises:
            ConnectionError: there is no way in.

        Example:
            >>> anyio.run(toy.connection)
            Traceback (most recent call last):
                ...
            ConnectionError: Toy offers no connection: its commands run through exec() only
        """
        raise ConnectionError(f"{type(self).__name__} offers no connection: its commands run through exec() only")


class SandboxDriver(ABC):
    """Makes the sandboxes of one provider. One driver serves a whole run; its methods may run concurrently.

    Example:
        >>> from proctor.contracts import SandboxDriver
        >>> class ToyDriver(SandboxDriver):
        ...     async def sample_init(self, task, config, metadata):
        ...         return {"default": Toy(), "attacker": Toy()}
        ...
        ...     async def sample_cleanup(self, envs, interrupted):
        ...         envs.clear()
        >>> driver = ToyDriver()
    """

    async def check(self, config: Any) -> None:  # noqa: B027  # a driver may have nothing to refuse
        """Refuse what can't work before the first request is paid for; called for each configuration that is known.

        It is quick and makes nothing: it reads the configuration and asks whether the engine answers.

        Args:
            config: the provider's own configuration (``None`` without one); paths in it are absolute.

        Raises:
            UsageError: for a configuration that makes no sense; the message names the key and the line.
            PrerequisiteError: when something that it needs is not there; the message says what to do.

        Example:
            >>> anyio.run(driver.check, {"image": "python:3.12"})
        """

    async def task_init(self, task: str, config: Any) -> None:  # noqa: B027  # as check
        """Prepare for the samples of ``task`` that use ``config`` (build or pull images, check the engine).

        Called once for each distinct configuration of a task, before its first sample.

        Args:
            task: the name of the task.
            config: the provider's own configuration (``None`` without one).

        Example:
            >>> anyio.run(driver.task_init, "quiz", {"image": "python:3.12"})
        """

    @abstractmethod
    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """Make the sandboxes of one sample.

        Args:
            task: the name of the task.
            config: the provider's own configuration, from the task or the sample (``None`` without one).
            metadata: the sample's metadata.

        Returns:
            The sandboxes by name; the first is the default one.

        Example:
            >>> envs = anyio.run(driver.sample_init, "quiz", {"image": "python:3.12"}, {"level": 1})
            >>> list(envs)
            ['default', 'attacker']
        """

    @abstractmethod
    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """Take away what ``sample_init`` made.

        Args:
            envs: the sandboxes by name, as ``sample_init`` returned them.
            interrupted: whether the sample was cancelled; be quick then.

        Example:
            >>> anyio.run(driver.sample_cleanup, envs, False)
            >>> envs
            {}
        """

    async def task_cleanup(self, task: str, config: Any, cleanup: bool) -> None:  # noqa: B027  # as check
        """Take away what ``task_init`` made, unless the user asked to keep it.

        Args:
            task: the name of the task.
            config: the provider's own configuration (``None`` without one).
            cleanup: false when it is to be kept.

        Example:
            >>> anyio.run(driver.task_cleanup, "quiz", {"image": "python:3.12"}, True)
        """

    async def sandboxes(self) -> list[RunningSandbox]:
        """All that this provider has made, for whichever run, and that is still there; asked for outside of runs, too.

        A driver whose sandboxes end with the process has none to tell of.

        Raises:
            PrerequisiteError: nothing is set up here that could be asked: no engine, no cluster.
            UsageError: it can't be asked; the message says what to do.

        Example:
            >>> anyio.run(driver.sandboxes)
            []
        """
        return []

    async def remove(self, ids: Sequence[str]) -> list[str]:
        """Take away what ``sandboxes`` told of, whoever's it is, and return when it is gone.

        Args:
            ids: what to remove; one that is not there (any more) is passed over.

        Returns:
            The names of what was removed, as a person knows them.

        Raises:
            SandboxBrokenError: something is still there.

        Example:
            >>> anyio.run(driver.remove, ["box7"])
            []
        """
        return []

    async def reap(self, run_id: str | None) -> list[str]:
        """Take away what the dead run ``run_id`` (``None``: any dead run) left behind; the names of what was removed.

        What belongs to a process that is alive, or of which that can't be known, stays; so does what is kept for a
        person to look into, unless its run is named. By ``sandboxes`` and
        ``remove``, so a driver that has these needs no other.

        Example:
            >>> anyio.run(driver.reap, None)
            []
        """
        from anyio import to_thread

        found = await self.sandboxes()

        def dead() -> list[str]:
            ids = []
            for each in found:
                owner = each.owner
                if owner is None or owner.run_id != (run_id or owner.run_id) or (owner.keep and run_id is None):
                    continue
                if owner.alive() is False:
                    ids.append(each.id)
            return ids

        ids = await to_thread.run_sync(dead) if found else []
        return await self.remove(ids) if ids else []
