"""A container of a sample's pod, as the sandbox that tasks see."""

from __future__ import annotations

import errno
import posixpath
import shlex
from typing import Literal, overload

from proctor.contracts import (
    ExecResult,
    SandboxConnection,
    SandboxEnvironment,
    SandboxUserUnsupportedError,
)
from proctor_sandbox_k8s._command import Result, Target, run
from proctor_sandbox_k8s._files import read_file, write_file
from proctor_sandbox_k8s._script import Command
from proctor_sandbox_k8s._threads import Threads

__all__ = ["KubernetesSandbox", "connection_of"]

_LONGEST = 128 * 1024 - 1  # bytes of an argument that Linux takes (execve(2), MAX_ARG_STRLEN)


class KubernetesSandbox(SandboxEnvironment):
    """One container.

    Args:
        target: where it is.
        directory: its working directory.
        threads: for its commands.
    """

    def __init__(self, target: Target, directory: str, threads: Threads) -> None:
        self.target = target
        self.directory = directory
        self._threads = threads

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> ExecResult[str]:
        """Run a command. Bytes that are no UTF-8 are replaced in what it wrote."""
        data = input.encode("utf-8") if isinstance(input, str) else input or b""
        command = Command(cmd, self._path(cwd or "."), data, env, user)
        _check_words(command)
        done = await self._threads.stream(lambda stop: run(self.target, command, stop, timeout))
        _check(done, command)
        code = done.outcome.code
        # A shell says 128 + n of what signal n has ended; so does the runtime, so there is nobody to ask.
        returncode = 128 - code if 128 < code <= 192 else code
        stdout, stderr = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
        return ExecResult(success=returncode == 0, returncode=returncode, stdout=stdout, stderr=stderr)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Read a file; as the container's own user."""
        path = self._path(file)
        data = await self._threads.stream(lambda stop: read_file(self.target, path, stop))
        return data.decode("utf-8") if text else data

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file; as the container's own user."""
        data = contents.encode("utf-8") if isinstance(contents, str) else contents
        path = self._path(file)
        await self._threads.stream(lambda stop: write_file(self.target, path, data, stop))

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        """A shell in the container, by kubectl."""
        pods = self.target.pods
        found = connection_of(pods.cluster.context, pods.namespace, self.target.watched.name, self.target.container)
        if user is None:
            return found
        command = found.command.removesuffix(" -- sh") + f" -- su -s /bin/sh {shlex.quote(user)}"
        return SandboxConnection(type="k8s", command=command, container=found.container)

    def _path(self, file: str) -> str:
        return posixpath.join(self.directory, file)  # an absolute path stays what it is

    def __repr__(self) -> str:
        return f"<pod {self.target.pods.namespace}/{self.target.watched.name} {self.target.container}>"


def connection_of(context: str | None, namespace: str, pod: str, container: str | None) -> SandboxConnection:
    """The command line that leads into a container."""
    chosen = ["--context", context] if context else []
    inside = ["-c", container] if container else []
    words = ["kubectl", *chosen, "-n", namespace, "exec", "-it", pod, *inside, "--", "sh"]
    return SandboxConnection(type="k8s", command=shlex.join(words), container=f"{namespace}/{pod}")


def _check_words(command: Command) -> None:
    texts = [*command.words, command.cwd, *(each for pair in (command.env or {}).items() for each in pair)]
    if not command.words:
        raise ValueError("a command has at least one word")
    if any("\0" in text for text in texts):
        raise ValueError("no word of a command may have a NUL in it")
    if any("=" in name or not name for name in command.env or {}):
        raise ValueError("the name of a variable is not empty and has no '=' in it")
    if any(len(text.encode("utf-8", "surrogateescape")) > _LONGEST for text in texts):
        raise OSError(errno.E2BIG, "a word of a command is longer than Linux takes (128 KiB): give it as input")


def _check(done: Result, command: Command) -> None:
    """What the shell said in place of running the command."""
    kinds, cwd, name = done.outcome.kinds, command.cwd, command.words[0]
    errors: dict[str, Exception] = {
        "cwd-missing": FileNotFoundError(errno.ENOENT, "there is no such directory", cwd),
        "cwd-file": NotADirectoryError(errno.ENOTDIR, "it is no directory", cwd),
        "cwd-denied": PermissionError(errno.EACCES, "the directory may not be entered", cwd),
        "missing": FileNotFoundError(errno.ENOENT, "there is no such command", name),
        "denied": PermissionError(errno.EACCES, "it may not be executed", name),
        "no-user": SandboxUserUnsupportedError(f"there is no user {command.user!r} in the container"),
        "not-root": SandboxUserUnsupportedError(
            f"the container's own user is not root, so it can't run commands as {command.user!r}"
        ),
    }
    for kind in kinds:
        if kind in errors:
            raise errors[kind]
    if command.user is not None and "in" not in kinds:
        said = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise SandboxUserUnsupportedError(f"the container can't run commands as {command.user!r}: {said}")
