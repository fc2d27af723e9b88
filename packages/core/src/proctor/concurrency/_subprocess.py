from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess as std
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import ByteReceiveStream, Process

from proctor.concurrency._marks import kill_descendants, kill_marked, marked_environment
from proctor.concurrency._run import subprocess_gate
from proctor.contracts import ExecResult, ExecTimeoutError, OutputLimitExceededError
from proctor.monitor import doing
from proctor.schema import quick_id

__all__ = ["kill_groups", "process_exists", "subprocess"]

_CHUNK = 65536
_DYING = 0.25  # seconds
_GRACE = 0.25  # seconds in which the last output of a command is read when a child of it holds the pipes
_CLOSING = 3  # steps of the loop in which asyncio closes pipes; one that ended before would leave them open
_FIRST_LOOK, _LAST_LOOK = 0.01, 0.25  # seconds between looks at a command whose pipes are open


async def subprocess(
    args: str | Sequence[str],
    *,
    text: bool = True,
    input: str | bytes | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    output_limit: int | None = None,
    background: set[int] | None = None,
    mark: str = "",
) -> ExecResult[Any]:
    """Run a command inside the run's subprocess gate and return what it printed.

    It is over when the command itself is. Children that it left in the background (``server &``) go on; what they print
    later is lost, and may fail, since the pipes are closed: they should write to a file.

    Args:
        args: a command line for the shell, or a list of words that no shell sees.
        text: decode the output as UTF-8 (undecodable bytes are replaced); else it stays bytes.
        input: what the command reads on standard input.
        env: variables beside those of this process.
        cwd: the folder it runs in; this process's own by default.
        timeout: seconds from the start (the wait for the gate is not counted).
        output_limit: bytes that either stream may have.
        background: gets the process group if something of it still runs, for ``kill_groups``.
        mark: something unique that its processes are found by on Linux, for ``kill_marked``.

    Raises:
        ExecTimeoutError: after all that the command started is dead; it carries what there was.
        OutputLimitExceededError: when a stream grew past ``output_limit``; it carries what there was.
    """
    own = quick_id()
    async with subprocess_gate():
        process = await _start(args, stdin=input is not None, cwd=cwd, env=marked_environment(env, mark, own))
        stdout, stderr = bytearray(), bytearray()
        try:
            with doing("subprocess", _line(args)), anyio.move_on_after(timeout) as deadline:
                await _communicate(process, _bytes(input), (stdout, stderr), output_limit, deadline)
                if process.returncode is None:
                    await process.wait()
            if deadline.cancelled_caught:
                raise ExecTimeoutError(timeout, _text(stdout), _text(stderr))
        except BaseException:
            # Also when the leader is gone: children that outlived it hold the pipes and the group.
            await _kill(process, own)
            raise
        finally:
            await _close(process)
        if background is not None and _alive(process.pid):
            background.add(process.pid)
    code, decode = process.returncode or 0, _text if text else bytes
    return ExecResult(code == 0, code, decode(stdout), decode(stderr))


async def _start(
    args: str | Sequence[str], *, stdin: bool, cwd: str | os.PathLike[str] | None, env: Mapping[str, str]
) -> Process:
    """The process of a command; shielded.

    One whose start were cancelled would be known to nobody: its children would go on, and asyncio would leave its pipes
    open.
    """
    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(
            args if isinstance(args, str) else list(args),
            stdin=std.PIPE if stdin else std.DEVNULL,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    return process


async def _close(process: Process) -> None:
    with anyio.CancelScope(shield=True):
        await process.aclose()
        for _ in range(_CLOSING):
            await anyio.lowlevel.checkpoint()


async def kill_groups(groups: Iterable[int]) -> None:
    """Kill what commands left in the background, and return when it is gone.

    Args:
        groups: what ``subprocess`` put into ``background``.
    """
    killed = []
    for group in groups:
        if process_exists(group):
            continue  # its first process has ended, so this is a new one that was given the same number
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
            killed.append(group)
    for group in killed:
        await _gone(group)


async def _communicate(
    process: Process,
    data: bytes | None,
    output: tuple[bytearray, bytearray],
    limit: int | None,
    deadline: anyio.CancelScope,
) -> None:
    stdout, stderr = output
    assert process.stdout is not None and process.stderr is not None
    exceeded = False

    async def drain(stream: ByteReceiveStream, into: bytearray) -> None:
        nonlocal exceeded
        with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                into += await stream.receive(_CHUNK)
                if limit is not None and len(into) > limit:
                    exceeded = True
                    watched.cancel_scope.cancel()

    async def watch() -> None:
        # Not by `wait`: with older versions of anyio on asyncio that ends only when the pipes do.
        pause = _FIRST_LOOK
        while process.returncode is None:
            await anyio.sleep(pause)
            pause = min(pause * 1.5, _LAST_LOOK)
        deadline.deadline = math.inf  # in time: what follows is ours
        await anyio.sleep(_GRACE)
        watched.cancel_scope.cancel()

    async with anyio.create_task_group() as watched:
        watched.start_soon(watch)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain, process.stdout, stdout)
            tasks.start_soon(drain, process.stderr, stderr)
            if data is not None and process.stdin is not None:
                # A command that does not read its input closes the pipe early; that is no error.
                with contextlib.suppress(anyio.BrokenResourceError, BrokenPipeError, ConnectionError):
                    await process.stdin.send(data)
                with contextlib.suppress(anyio.BrokenResourceError, BrokenPipeError, ConnectionError):
                    await process.stdin.aclose()
        watched.cancel_scope.cancel()
    if exceeded and limit is not None:
        raise OutputLimitExceededError(f"{limit} bytes", _text(max(stdout, stderr, key=len)[:limit]))


async def _kill(process: Process, own: str) -> None:
    """Kill the command and all that it started: descendants, process group, on Linux what has its mark."""
    with anyio.CancelScope(shield=True):
        await kill_descendants(process.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
            # Not by `wait`, see above: nobody reads the pipes now, so they do not end.
            while process.returncode is None:  # noqa: ASYNC110
                await anyio.sleep(0.002)
            await _gone(process.pid)
        await kill_marked(own)
    await _discard(process)


async def _gone(group: int) -> None:
    """Wait for the end of a killed group: SIGKILL is sent, not yet obeyed, when killpg returns."""
    # The bound is for zombies that nobody reaps.
    with anyio.move_on_after(_DYING, shield=True):
        while _alive(group):  # noqa: ASYNC110 - the system sends no event when a group is empty
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


def process_exists(pid: int) -> bool:
    """Whether there is a process with this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _line(args: str | Sequence[str]) -> str:
    return args if isinstance(args, str) else " ".join(args)


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", errors="replace")
