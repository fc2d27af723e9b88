"""Sandboxes with one fault each, as a plugin: run by ``test_faulty_components.py`` as a module of tests of its own.

Each provider is named after the check that it must fail. Where a fault would show in several checks, it is so narrow
that it does not.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from proctor.concurrency import kill_groups
from proctor.contracts import (
    ExecResult,
    OutputLimitExceededError,
    RunningSandbox,
    SandboxBrokenError,
    SandboxConnection,
    SandboxDriver,
    SandboxEnvironment,
    SandboxProvider,
    SandboxUserUnsupportedError,
    UsageError,
)
from proctor.hookspecs import hookimpl
from proctor.sandbox import LocalSandbox, LocalSandboxDriver
from proctor_testkit import SandboxSuite
from proctor_testkit._sandbox_checks import TICKS

# Other ways to fail a check, which stands before the two lines.
VARIANTS = (
    "unblocked__read",
    "unblocked__write",
)
FAULTS = ["faultless", *(one.id.partition(".")[2] for one in SandboxSuite.checks()), *VARIANTS]
MIB = 1024**2


class Box(SandboxEnvironment):
    shared: dict[str, bytes] = {}
    live: dict[str, Box] = {}
    running = 0

    def __init__(self, inner: LocalSandbox, fault: str) -> None:
        self.inner, self.fault, self.dead = inner, fault, False
        self.gone = anyio.Event()
        self.live[inner.directory.parent.name] = self

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> ExecResult[str]:
        if user in ("root", "nobody") and cmd[0] == "id":  # stands for a sandbox that can change to them
            return ExecResult(True, 0, "root" if self.fault == "users" else str(user), "")
        if self.dead:
            raise RuntimeError("the sandbox has ended")
        return await self._unless_gone(partial(self._exec, cmd, input, cwd, env, user, timeout))

    async def _unless_gone(self, work: Callable[[], Awaitable[ExecResult[str]]]) -> ExecResult[str]:
        """What ``work`` comes to, as long as nobody takes the sandbox away."""
        result: list[ExecResult[str] | Exception] = []

        async def run() -> None:
            try:
                result.append(await work())
            except Exception as error:
                result.append(error)
            done.set()

        done = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            group.start_soon(self._await_gone, done)
            await done.wait()
            gone = self.gone.is_set()
            group.cancel_scope.cancel()
        if gone:
            if self.fault == "vanish":
                return ExecResult(False, -9, "", "")
            raise SandboxBrokenError("the folder was taken away", "gone")
        if isinstance(result[0], Exception):
            raise result[0]
        return result[0]

    async def _await_gone(self, done: anyio.Event) -> None:
        await self.gone.wait()
        done.set()

    async def _exec(
        self, cmd: list[str], input: Any, cwd: Any, env: Any, user: str | None, timeout: float | None
    ) -> ExecResult[str]:
        cmd, input, cwd, env = self._changed(cmd, input, cwd, env)
        await self._before(cmd, timeout)
        Box.running += 1
        mixed = self.fault == "at_once" and Box.running > 20
        try:
            result = await self.inner.exec(cmd, input, cwd, env, user, timeout)
        except Exception as error:
            return await self._failed(error, cmd, cwd)
        finally:
            Box.running -= 1
        return replace(result, stdout="another's\n") if mixed else await self._after(result)

    def _changed(self, cmd: list[str], input: Any, cwd: Any, env: Any) -> tuple[list[str], Any, Any, Any]:
        match self.fault:
            case "arguments":
                cmd = [word for word in cmd if word]
            case "stdin" if cmd == ["cat"] and input is None:
                cmd = ["sleep", "60"]
            case "stdin_bytes" if isinstance(input, bytes) and len(input) < MIB:
                input = input.replace(b"\r", b"\n")
            case "stdin_large" if input is not None and len(input) > 32 * MIB:
                input = input[: 32 * MIB]
            case "stdin_unread" if "exec <&-" in cmd[-1]:
                raise BrokenPipeError
            case "cwd" if cwd is not None and cwd.startswith("/"):
                cwd = None
            case "unblocked" if cmd[0] == "sleep":
                time.sleep(0.5)
                cmd = ["true"]
            case "env" if env:
                env = {name: value.replace("\n", " ") for name, value in env.items()}
        return cmd, input, cwd, env

    async def _before(self, cmd: list[str], timeout: float | None) -> None:
        if self.fault == "timeout_sessions" and "setsid" in cmd[-1]:
            await self.inner.exec(["sh", "-c", f"({TICKS}) > /dev/null 2>&1 &"])
            raise TimeoutError
        goes_on = "ticks" in cmd[-1] and "sleep 600" in cmd[-1]
        if goes_on and self.fault == ("cancel" if timeout is None else "timeout"):
            await self.inner.exec(["sh", "-c", f"({TICKS}) > /dev/null 2>&1 &"])
            if timeout is not None:
                raise TimeoutError

    async def _after(self, result: ExecResult[str]) -> ExecResult[str]:
        match self.fault:
            case "exec":
                return replace(result, stdout=result.stdout + result.stderr)
            case "exit_codes" if result.returncode == 77:
                return replace(result, returncode=1)
            case "signal" if result.returncode == -9:
                return replace(result, returncode=137)
            case "background":
                await kill_groups(self.inner.background)
            case "output_text":
                return replace(result, stdout=result.stdout.replace("😀", "\ufffd\ufffd", 1))
            case "output_not_text":
                return replace(result, stdout=result.stdout.replace("\ufffd", ""))
            case "output_large" if len(result.stdout) == 10 * MIB:
                raise OutputLimitExceededError("10 MiB", "x")
        return result

    async def _failed(self, error: Exception, cmd: list[str], cwd: str | None) -> ExecResult[str]:
        match self.fault, error:
            case "missing_command", FileNotFoundError() if cwd is None:
                return ExecResult(False, 127, "", "not found")
            case "missing_cwd", FileNotFoundError() if cwd is not None:
                raise RuntimeError("no such directory") from None
            case "not_executable", PermissionError():
                return ExecResult(False, 126, "", "permission denied")
            case "timeout_output", TimeoutError():
                raise TimeoutError from None
            case "after_timeout", TimeoutError() if cmd == ["sleep", "600"]:
                self.dead = True
            case "output_limit", OutputLimitExceededError():
                raise OutputLimitExceededError("10 MiB") from None
            case "user_unsupported", SandboxUserUnsupportedError():
                return ExecResult(True, 0, "", "")
        raise error

    async def read_file(self, file: str, text: bool = True) -> Any:
        if self.fault == "default_directory" and file == "made":
            file = "elsewhere/made"
        if self.fault == "apart" and file in self.shared:
            return self.shared[file].decode()
        self._block("unblocked__read", file)
        try:
            data: Any = await (self.inner.read_file(file, True) if text else self.inner.read_file(file, False))
        except Exception as error:
            return self._unread(error)
        match self.fault:
            case "every_byte" if len(data) == 256:
                return data.replace(b"\r", b"\n")
            case "newlines" if text:
                return data.replace("\r\n", "\n")
            case "file_large":
                return data[: 64 * MIB]
        return data

    def _block(self, fault: str, file: str) -> None:
        if self.fault == fault and file == "awaited":
            time.sleep(0.5)

    def _unread(self, error: Exception) -> Any:
        match self.fault, error:
            case "missing_file", FileNotFoundError():
                raise RuntimeError("cat: no such file") from None
            case "not_text", UnicodeDecodeError():
                return "\ufffd\ufffd"
            case "unreadable", PermissionError():
                raise RuntimeError("cat: permission denied") from None
            case "file_limit", OutputLimitExceededError():
                return b""
        raise error

    async def write_file(self, file: str, contents: str | bytes) -> None:
        data = contents.encode() if isinstance(contents, str) else contents
        self._block("unblocked__write", file)
        match self.fault:
            case "apart" if file == "file":
                self.shared[file] = data
            case "files" if data == b"short":
                data += b" and what was there"
            case "parents" if file.startswith("some/"):
                raise FileNotFoundError(file)
            case "names" if "'" in file:
                raise ValueError("unmatched quote")
            case "absolute" if file.endswith("/absolute"):
                file = f"files{file}"
            case "file_mode" if file == "script":
                await self.inner.exec(["rm", "-f", file])
        try:
            await self.inner.write_file(file, data)
        except IsADirectoryError:
            raise (PermissionError if self.fault == "directory" else IsADirectoryError)(file) from None
        except PermissionError:
            if self.fault != "unwritable":
                raise

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        found = await self.inner.connection(user=user)
        return replace(found, command="") if self.fault == "connection" else found


class Driver(SandboxDriver):
    def __init__(self, fault: str) -> None:
        self.fault, self.inner, self.many = fault, LocalSandboxDriver(), 0

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        if task == "conformance-many" and self.fault == "max_sandboxes":
            self.many += 1
            if self.many > 1:
                raise RuntimeError("there is one already")
        boxes: dict[str, SandboxEnvironment] = {}
        for name in ("default", "other") if config == "pair" else ("default",):
            [box] = (await self.inner.sample_init(task, config, metadata)).values()
            assert isinstance(box, LocalSandbox)
            same = self.fault == "named" and name == "other"
            boxes[name] = boxes["default"] if same else Box(box, self.fault)
        return boxes

    async def check(self, config: Any) -> None:
        if self.fault == "check":
            raise UsageError(f"{config!r} makes no sense")

    async def sandboxes(self) -> list[RunningSandbox]:
        found = await self.inner.sandboxes()
        if self.fault == "owner":
            return [replace(one, owner=one.owner and replace(one.owner, epoch=0)) for one in found]
        return found

    async def remove(self, ids: Sequence[str]) -> list[str]:
        if self.fault == "remove":
            return list(ids)
        for id in ids:
            if id in Box.live:
                Box.live.pop(id).gone.set()
        return await self.inner.remove(ids)

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        self.many -= 1
        for box in envs.values():
            assert isinstance(box, Box)
            await kill_groups(box.inner.background)
            if self.fault != "cleanup":
                with anyio.CancelScope(shield=True):
                    await self.inner.sample_cleanup({"default": box.inner}, interrupted)

    async def reap(self, run_id: str | None) -> list[str]:
        if self.fault == "reap":
            return ["what is still there"]
        return await self.inner.reap(run_id)


def _limit(fault: str, cpus: int) -> int | None:
    return 0 if fault == "record" and cpus == 64 else 2 * cpus


@hookimpl
def proctor_sandbox_providers() -> Sequence[SandboxProvider]:
    return [
        SandboxProvider(
            name=fault,
            factory=partial(Driver, fault),
            default_max_sandboxes=partial(_limit, fault),
            backends=("asyncio",),
        )
        for fault in FAULTS
    ]


class Faulty(SandboxSuite):
    patience = 0.4
    services = "pair"
    capabilities = frozenset({"users", "reap", "list", "vanish", "sessions", "named"})
    backends = ("asyncio",)

    @pytest.fixture(autouse=True)
    def _its_own_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        Box.shared.clear()
        Box.live.clear()
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


for _fault in FAULTS:
    globals()[f"Test_{_fault}"] = type(f"Test_{_fault}", (Faulty,), {"provider": _fault, "__module__": __name__})
