"""One command in a container: begun once, heard to its end, or ended with all that it started."""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
import requests
from docker.errors import APIError, NotFound

from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._frames import Frames
from proctor_sandbox_docker._kill import HEARD_SCRIPT, KILL_SCRIPT, MARK, UNHEARD
from proctor_sandbox_docker._stream import Stopped, Stream

__all__ = ["Command", "NotBegun", "Outcome"]

_KILL_SECONDS = 4.0
"""Seconds that one look for processes to kill may take."""
_ENGINE_SAYS = re.compile(
    r"OCI runtime|unable to find user|no matching entries|crun|runc|exec format error|init process is not running"
)
"""In what the engine writes to the streams of a command that it could not begin."""
_SOON = 1.0
"""Seconds after its streams in which a command ends that has not closed them itself."""
_END_SECONDS = 5.0
"""Seconds that the engine has to know that a command, whose streams have ended, has ended itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    Args:
        code: exit code, as the engine has it (128 + n for a signal).
        full: the stream (1 or 2) that held more than the limit; the command may go on then.
    """

    code: int
    stdout: bytes
    stderr: bytes
    full: int | None = None


class NotBegun(Exception):
    """The engine could not begin the command.

    Attributes:
        reason: what it says.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason.strip()


class Command:
    """A command, which runs once.

    Args:
        engine: that has the container.
        container: its id.
        argv: the program and its arguments.
        stdin: what it reads.
        workdir: an absolute directory.
        env: variables.
        user: that it runs as; ``None`` = the container's own.
        limit: bytes of each stream that are kept.
        marked: whether its processes can be found again by ``kill``.
    """

    def __init__(
        self,
        engine: Engine,
        container: str,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        limit: int,
        marked: bool = True,
    ) -> None:
        self._engine = engine
        self._container = container
        self._argv = list(argv)
        self._stdin = stdin or None
        self._workdir = workdir
        self._user = user
        self._mark = secrets.token_hex(8)
        self._env = dict(env or {})
        if marked:
            self._env[MARK] = self._mark
        self._frames = Frames(limit)
        self._stream = Stream(engine.address, self._frames)
        self._id: str | None = None

    async def run(self) -> Outcome:
        """Run it, and wait for its end.

        Raises:
            NotBegun: it could not be started; the message is the engine's.
            SandboxBrokenError: the engine is not well.
            docker.errors.APIError: it refuses, as when the container is gone.
        """
        try:
            outcome = await self._engine.streams.run(self._run, abandon=self._stream.stop)
            if outcome is None:
                await self._check_heard()
                outcome = await self._engine.streams.run(self._outcome, abandon=self._stream.stop)
                assert outcome is not None
            return outcome
        except APIError as error:
            # What is wrong with a command is the engine's own failure, as some of them see it.
            if (self._stream.begun and error.status_code != 404) or error.status_code in (400, 500):
                raise NotBegun(str(error.explanation or error)) from error
            raise
        except (requests.RequestException, OSError) as error:
            self._engine.trouble("exec", error)

    @property
    def begun(self) -> bool:
        """Whether the engine was told to begin it."""
        return self._stream.begun

    def so_far(self) -> tuple[bytes, bytes]:
        """What has come on standard output and standard error."""
        return self._frames.stdout, self._frames.stderr

    def _run(self) -> Outcome | None:
        """Begin it and hear it to the end of its streams; ``None`` where it goes on after that."""
        client = self._engine.client
        try:
            made = client.exec_create(
                self._container,
                self._argv,
                stdin=self._stdin is not None,
                environment=self._env,
                workdir=self._workdir,
                user=self._user or "",
            )
            self._id = str(made["Id"])
            if not self._stream.begin():
                raise Stopped
            self._stream.open(f"/v{client.api_version}/exec/{self._id}/start", {"Detach": False, "Tty": False})
            try:
                self._stream.run(self._stdin, self._has_ended)
            except Stopped:
                if not self._frames.full:
                    raise
                return Outcome(-1, self._frames.stdout, self._frames.stderr, self._frames.full)
            return self._outcome(_SOON)
        finally:
            self._stream.close()

    def _inspect(self) -> dict[str, Any]:
        look: Callable[[str | None], dict[str, Any]] = self._engine.client.exec_inspect
        try:
            return look(self._id)
        except requests.ConnectionError:  # one that was kept open may have broken meanwhile; to look again does no harm
            return look(self._id)

    def _has_ended(self) -> bool:
        return _is_over(self._inspect())

    def _outcome(self, seconds: float = math.inf) -> Outcome | None:
        """How it ended, once the engine knows it; ``None`` after so many seconds in which it does not."""
        pause, end = 0.005, time.monotonic() + seconds
        while True:
            found = self._inspect()
            if _is_over(found):
                break
            if self._stream.stopped:
                raise Stopped
            if time.monotonic() > end:
                return None
            time.sleep(pause)  # in a thread, for what has no event to wait for
            pause = min(pause * 2, 1.0)
        code = int(found["ExitCode"])
        if code in (126, 127, 128, 255) and not found.get("Pid"):
            said = (self._frames.stdout + self._frames.stderr).decode("utf-8", "replace")
            # Podman forgets the number of a process that has ended, and a command may well return 128.
            if _ENGINE_SAYS.search(said) or (code == 128 and not self._engine.podman):
                raise NotBegun(said)
        return Outcome(code, self._frames.stdout, self._frames.stderr)

    async def _check_heard(self) -> None:
        """See that the command itself has closed its streams, which have ended while it goes on.

        Raises:
            SandboxBrokenError: it has not: what it writes is lost.
        """
        script = ["sh", "-c", HEARD_SCRIPT, "proctor", f"{MARK}={self._mark}"]
        look = Command(self._engine, self._container, script, user=self._user, limit=64 * 1024, marked=False)
        with anyio.move_on_after(_KILL_SECONDS), suppress(NotBegun, APIError):  # where nobody can look, it is believed
            if (await look.run()).code == UNHEARD:
                await self.kill()
                self._engine.trouble("exec", "its connection broke while the command ran on; what it wrote is lost")

    async def kill(self, seconds: float = 15.0) -> None:
        """End it and all that it started; returns when they are gone.

        Where that can't be done from inside (no shell, no more processes), the container is started anew: its files
        stay, but whatever else ran in it is ended as well.

        Raises:
            SandboxBrokenError: not even that was possible.
        """
        with anyio.CancelScope(shield=True):
            try:
                with anyio.fail_after(seconds):
                    await self._kill()
            except TimeoutError:
                self._engine.trouble("end a command", f"it was not dead after {seconds:g} s")

    async def _kill(self) -> None:
        if not self._stream.begun:
            return
        left: list[str] = []
        for user in dict.fromkeys((self._user, self._user, "0")):
            left = await self._look_and_kill(user, left)
            if not left and await self._is_over():
                return
        await self._engine.call("end a command", lambda client: client.restart(self._container, timeout=0))

    async def _look_and_kill(self, user: str | None, seeds: list[str]) -> list[str]:
        """Processes that it found and could not end; ``["?"]`` when it could not look."""
        known = [pid for pid in seeds if pid.isdigit()]
        script = ["sh", "-c", KILL_SCRIPT, "proctor", f"{MARK}={self._mark}", *known]
        killer = Command(self._engine, self._container, script, user=user, limit=64 * 1024, marked=False)
        with anyio.move_on_after(_KILL_SECONDS), suppress(NotBegun, APIError):
            outcome = await killer.run()
            return outcome.stdout.decode("utf-8", "replace").split() if outcome.code else []
        return ["?"]

    async def _is_over(self) -> bool:
        """Whether the engine, too, says that the command has ended, now or a little later."""
        with anyio.move_on_after(_END_SECONDS):
            while True:
                try:
                    found = await self._engine.call("look at a command", lambda client: self._inspect())
                except NotFound:
                    return True
                if _is_over(found):
                    return True
                await anyio.sleep(0.05)
        return False


def _is_over(found: Mapping[str, Any]) -> bool:
    """Whether the engine says of a command that it has ended; one without an exit code has yet to begin."""
    return not found.get("Running") and found.get("ExitCode") is not None
