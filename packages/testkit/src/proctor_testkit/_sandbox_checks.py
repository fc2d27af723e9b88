"""What all checks of sandboxes stand on: the provider, and a sandbox of it."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import anyio
import pytest

from proctor import plugins
from proctor.contracts import SandboxDriver, SandboxEnvironment, SandboxProvider
from proctor_testkit._suite import Needed, Suite

__all__ = ["TICKS", "DriverOpener", "SandboxChecks", "driver_of"]

DriverOpener = Callable[[], SandboxDriver]

TASK = "conformance"
MANY_TASK = "conformance-many"
TICKS = "n=0; while [ $n -lt 1200 ] && echo . >> ticks; do n=$((n + 1)); sleep 0.05; done"
"""A shell command that lives on, and can be heard as long as it does: for a minute, since what a sandbox that is at
fault leaves behind must not live for ever."""


def driver_of(provider: str) -> SandboxDriver:
    """A new driver of the provider that a plugin registered under this name."""
    record: SandboxProvider = plugins.get("sandbox_providers", provider)
    return record.factory()


class SandboxChecks(Suite):
    """The fixtures and helpers; see ``SandboxSuite``."""

    kind = "sandbox"
    needed = (Needed("provider", 'provider = "acme", the name of its record'),)
    provider: ClassVar[str]
    config: ClassVar[Any] = None
    patience: ClassVar[float] = 2.0

    pytestmark = pytest.mark.anyio

    @classmethod
    def component(cls) -> str:
        """The provider's name."""
        return getattr(cls, "provider", super().component())

    def record(self) -> SandboxProvider:
        """The record that the provider's hook returned."""
        found: SandboxProvider = plugins.get("sandbox_providers", self.provider)
        return found

    @pytest.fixture
    def opener(self) -> DriverOpener:
        """Makes a driver, also in another process: something that can be pickled. By default what is registered."""
        return functools.partial(driver_of, self.provider)

    @pytest.fixture
    def driver(self, opener: DriverOpener) -> SandboxDriver:
        """A driver, as a run makes one."""
        return opener()

    @pytest.fixture
    async def box(self, driver: SandboxDriver) -> AsyncIterator[SandboxEnvironment]:
        """The default sandbox of a sample."""
        async with self.made(driver) as envs:
            yield next(iter(envs.values()))

    @asynccontextmanager
    async def made(self, driver: SandboxDriver, config: Any = None) -> AsyncIterator[dict[str, SandboxEnvironment]]:
        """The sandboxes of a sample; they are taken away at the end, unless the check did so itself."""
        config = self.config if config is None else config
        await driver.task_init(TASK, config)
        envs = await driver.sample_init(TASK, config, {})
        taken = dict(envs)
        try:
            yield envs
        finally:
            with anyio.CancelScope(shield=True):
                if envs:  # a check that took them away empties this
                    await driver.sample_cleanup(taken, False)
                await driver.task_cleanup(TASK, config, True)

    async def sh(self, box: SandboxEnvironment, script: str, **options: Any) -> str:
        """What a shell command writes; it must succeed."""
        result = await box.exec(["sh", "-c", script], **options)
        assert result.success, f"{script!r} ended with {result.returncode}: {result.stderr}"
        return result.stdout

    async def still_ticks(self, box: SandboxEnvironment) -> bool:
        """Whether a command that writes ``TICKS`` is alive."""
        before = await self.sh(box, "wc -c < ticks")
        return await self.sh(box, "sleep 0.3; wc -c < ticks") != before

    async def ticking(self, box: SandboxEnvironment) -> None:
        """Wait until a command that writes ``TICKS`` has begun."""
        await self.sh(box, "for n in $(seq 200); do [ -s ticks ] && exit 0; sleep 0.05; done; exit 1")
