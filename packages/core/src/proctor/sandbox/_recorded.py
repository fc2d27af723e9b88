"""A sandbox whose operations are recorded in the transcript."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Any, Literal, overload

from proctor.contracts import ExecResult, SandboxBrokenError, SandboxConnection, SandboxEnvironment
from proctor.log import now_iso, transcript
from proctor.monitor import doing
from proctor.sandbox._calls import Calls
from proctor.schema import SandboxEvent

__all__ = ["RecordedSandbox"]

_SHOWN = 16 * 1024
"""Characters of an input or an output that the transcript keeps."""


class RecordedSandbox(SandboxEnvironment):
    """Passes everything on to ``inner`` and records it.

    Args:
        inner: the sandbox of a provider.
        calls: those of its sample.
    """

    def __init__(self, inner: SandboxEnvironment, calls: Calls) -> None:
        self.inner = inner
        self._calls = calls

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> ExecResult[str]:
        """Run a command and record how it ended."""
        options = {"cwd": cwd, "env": env, "user": user, "timeout": timeout}
        event = _begin(
            action="exec",
            cmd=shlex.join(cmd),
            input=None if input is None else _shown(input),
            options={name: value for name, value in options.items() if value is not None} or None,
        )
        try:
            async with self._calls.place():
                with doing("sandbox", f"exec {event.cmd}"):
                    work = partial(self.inner.exec, cmd, input, cwd, env, user, timeout)
                    result = await self._calls.within(work, timeout, str(event.cmd))
        except BaseException as error:
            self._failed(event, error)
            raise
        event.result = result.returncode
        event.output = _shown(f"{result.stderr}\n\n{result.stdout}" if result.stderr else result.stdout)
        _end(event)
        return result

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Read a file and record what it held."""
        event = _begin(action="read_file", file=file)
        contents: str | bytes
        try:
            with doing("sandbox", f"read_file {file}"):
                contents = await (self.inner.read_file(file, True) if text else self.inner.read_file(file, False))
        except BaseException as error:
            self._failed(event, error)
            raise
        event.output = _shown(contents)
        _end(event)
        return contents

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file and record what was written."""
        event = _begin(action="write_file", file=file, input=_shown(contents))
        try:
            with doing("sandbox", f"write_file {file}"):
                await self.inner.write_file(file, contents)
        except BaseException as error:
            self._failed(event, error)
            raise
        _end(event)

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        """How a person gets into the sandbox."""
        return await self.inner.connection(user=user)

    def _failed(self, event: SandboxEvent, error: BaseException) -> None:
        if isinstance(error, SandboxBrokenError):
            self._calls.broken = self._calls.broken or error
        event.output = _shown(f"{type(error).__name__}: {error}")
        _end(event)

    def __repr__(self) -> str:
        return f"<{type(self.inner).__name__}>"


def _begin(**known: Any) -> SandboxEvent:
    event = SandboxEvent(**known, pending=True)
    transcript().event(event)
    return event


def _end(event: SandboxEvent) -> None:
    event.completed = now_iso()
    event.pending = None


def _shown(data: str | bytes) -> str:
    if isinstance(data, bytes):
        return f"binary ({len(data)} B)"
    if len(data) <= _SHOWN:
        return data
    half = _SHOWN // 2
    return f"{data[:half]}\n[... {len(data) - _SHOWN} characters left out ...]\n{data[-half:]}"
