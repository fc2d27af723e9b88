from __future__ import annotations

import contextlib
import os
import signal
import subprocess as std
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process

from proctor.concurrency._run import subprocess_gate
from proctor.contracts import ExecResult, OutputLimitExceededError

__all__ = ["subprocess"]

_CHUNK = 65536
_DYING = 0.25  # seconds


async def subprocess(
    args: str | Sequence[str],
    *,
    text: bool = True,
    input: str | bytes | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    output_limit: int | None = None,
) -> ExecResult[Any]:
    """Run a command inside the run's subprocess gate and return what it printed.

    Args:
        args: a command line for the shell, or a list of words that no shell sees.
        text: decode the output as UTF-8 (undecodable bytes are replaced); else it stays bytes.
        input: what the command reads on standard input.
        env: variables beside those of this process.
        timeout: seconds from the start (the wait for the gate is not counted).
        output_limit: bytes that either stream may have.

    Raises:
        TimeoutError: after the whole process group is dead.
        OutputLimitExceededError: when a stream grew past ``output_limit``; it carries what there was.
    """
    async with subprocess_gate():
        process = await anyio.open_process(
            args if isinstance(args, str) else list(args),
            stdin=std.PIPE if input is not None else std.DEVNULL,
            cwd=cwd,
            env={**os.environ, **env} if env else None,
            start_new_session=True,
        )
        try:
            with anyio.fail_after(timeout):
                stdout, stderr = await _communicate(process, _bytes(input), output_limit)
                await process.wait()
        except BaseException:
            # Also when the leader is gone: children that outlived it hold the pipes and the group.
            await _kill_group(process)
            await _discard(process)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await process.aclose()
    returncode = process.returncode or 0
    if text:
        return ExecResult(returncode == 0, returncode, _text(stdout), _text(stderr))
    return ExecResult(returncode == 0, returncode, bytes(stdout), bytes(stderr))


async def _communicate(process: Process, data: bytes | None, limit: int | None) -> tuple[bytearray, bytearray]:
    stdout, stderr = bytearray(), bytearray()
    assert process.stdout is not None and process.stderr is not None
    exceeded = False

    async def drain(stream: ByteReceiveStream, into: bytearray) -> None:
        nonlocal exceeded
        with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                into += await stream.receive(_CHUNK)
                if limit is not None and len(into) > limit:
                    exceeded = True
                    tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drain, process.stdout, stdout)
        tasks.start_soon(drain, process.stderr, stderr)
        if data is not None and process.stdin is not None:
            # A command that does not read its input closes the pipe early; that is no error.
            with contextlib.suppress(anyio.BrokenResourceError, BrokenPipeError, ConnectionError):
                await process.stdin.send(data)
            with contextlib.suppress(anyio.BrokenResourceError, BrokenPipeError, ConnectionError):
                await process.stdin.aclose()
    if exceeded and limit is not None:
        raise OutputLimitExceededError(f"{limit} bytes", _text(max(stdout, stderr, key=len)[:limit]))
    return stdout, stderr


async def _kill_group(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.wait()
            # SIGKILL is sent, not yet obeyed, when killpg returns. The bound is for zombies that nobody reaps.
            with anyio.move_on_after(_DYING):
                while _alive(process.pid):  # noqa: ASYNC110 - the system sends no event when a group is empty
                    await anyio.sleep(0.002)


async def _discard(process: Process) -> None:
    """Read what is left in the pipes: for asyncio, since Python 3.13, the end of a process is not the end of them."""
    with anyio.move_on_after(_DYING, shield=True):
        for stream in (process.stdout, process.stderr):
            with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                while stream is not None:
                    await stream.receive(_CHUNK)


def _alive(group: int) -> bool:
    """Whether the process group has a member (signal 0 asks and does nothing)."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", errors="replace")
