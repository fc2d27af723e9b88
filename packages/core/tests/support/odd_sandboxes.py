"""A plugin with sandboxes that go wrong in the way that their configuration says."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from proctor.contracts import (
    ExecResult,
    RunningSandbox,
    SandboxBrokenError,
    SandboxDriver,
    SandboxEnvironment,
    SandboxOwner,
    SandboxProvider,
    UsageError,
)
from proctor.hookspecs import hookimpl
from proctor.sandbox import LocalSandbox, samples_to_come, sandbox_owner

made: list[tuple[Any, SandboxOwner]] = []
"""Configuration and owner of each sandbox that was made."""
to_come: list[int | None] = []
"""How many samples were to come when each of them was made."""
there: dict[str, SandboxOwner] = {}
"""What the engine has: the sandboxes that are up, and what dead runs left."""


def reset() -> None:
    made.clear()
    to_come.clear()
    there.clear()
    dead = replace(SandboxOwner.of_this_process("dead-run"), started="0-0")
    there.update({"left1": dead, "left2": replace(dead, keep=True), "elsewhere": replace(dead, host="elsewhere")})


async def never() -> None:
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()


class OddBox(LocalSandbox):
    def __init__(self, how: str) -> None:
        super().__init__(Path(tempfile.mkdtemp()))
        self.how, self.id = how, f"box{len(made)}"

    async def exec(self, cmd: list[str], *args: Any, **kwargs: Any) -> ExecResult[str]:
        if self.how == "breaks" or (self.how == "breaks once" and len(made) == 1):
            raise SandboxBrokenError("the container is gone", state="exited (137)", logs="out of memory")
        if self.how == "hangs":
            await never()
        return await super().exec(cmd, *args, **kwargs)


class OddDriver(SandboxDriver):
    async def check(self, config: Any) -> None:
        if isinstance(config, dict) and config.get("how") == "bad":
            raise UsageError("compose.yaml, line 3: 'imag' is no key of a service")
        if isinstance(config, dict) and config.get("how") == "no engine":
            raise ConnectionRefusedError("no engine answers at unix:///run/odd.sock")

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        how = config["how"] if isinstance(config, dict) else ""
        made.append((config, sandbox_owner()))
        to_come.append(samples_to_come())
        if how == "start fails" or (how == "start fails once" and len(made) == 1):
            raise ConnectionResetError("the engine went away")
        if how == "start hangs":
            await never()
        box = OddBox(how)
        there[box.id] = sandbox_owner()
        return {"default": box}

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        for box in envs.values():
            assert isinstance(box, OddBox)
            if box.how == "stop hangs":
                await never()
            if box.how == "stop fails":
                raise ConnectionResetError("the engine went away")
            del there[box.id]

    async def sandboxes(self) -> list[RunningSandbox]:
        return [RunningSandbox(id, owner, "running", None, None) for id, owner in there.items()]

    async def remove(self, ids: Sequence[str]) -> list[str]:
        if "broken" in there:
            raise SandboxBrokenError("the engine does not answer")
        return [id for id in ids if there.pop(id, None) is not None]


@hookimpl
def proctor_sandbox_providers() -> Sequence[SandboxProvider]:
    return [
        SandboxProvider("odd", OddDriver, config_files=("odd.yaml", "odd.yml"), default_max_execs=lambda cpus: 1),
    ]
