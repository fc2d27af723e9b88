"""What the warm pool counts, holds and waits for; without an engine: the containers are empty."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from proctor.concurrency import detached_tasks
from proctor_sandbox_docker import _driver, _warm
from proctor_sandbox_docker._driver import DockerDriver
from proctor_sandbox_docker._made import Made
from proctor_sandbox_docker._warm import WarmPool
from proctor_sandbox_docker.compose import ProjectSpec, ServiceSpec

pytestmark = pytest.mark.anyio
PATIENCE = 10.0
CLEANUP_SECONDS = 60.0  # that the core gives


class Thing:
    """What a sample has."""


_of_sample: ContextVar[Thing] = ContextVar("of_sample")


class Pool:
    """A pool of two, and what it has started and removed.

    Attributes:
        to_come: how many samples are to come, by the project's number; ``None`` = unknown.
        may_go: whether removals come to their end.
        fails: what they raise.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pool = WarmPool(None, self._start, lambda text: None)  # type: ignore[arg-type]
        self.to_come: dict[int, int | None] = {}
        self.started: list[str] = []
        self.removed: list[str] = []
        self.may_go = anyio.Event()
        self.may_go.set()
        self.fails: Exception | None = None
        self._patch = monkeypatch
        pool = self

        async def remove(made: Made, engine: object) -> None:
            await pool.may_go.wait()
            pool.removed.append(made.project)
            if pool.fails is not None:
                raise pool.fails

        monkeypatch.setattr(Made, "remove", remove)

    async def _start(self, project: ProjectSpec, made: Made) -> Any:
        self.started.append(project.default)
        await anyio.sleep_forever()

    def prepare(self, number: int) -> None:
        self.pool.keep(f"task {number}", _project(number), 2)

    def sample(self, number: int, to_come: Callable[[], int | None] | None = None) -> None:
        """One that has its container, which it has started itself."""
        self._patch.setattr(_warm, "demand", lambda: to_come or (lambda: self.to_come[number]))
        self.pool.fill(f"task {number}", _project(number))


def _project(number: int) -> ProjectSpec:
    return ProjectSpec((ServiceSpec(f"s{number}", "x"),), f"s{number}")


@pytest.fixture
async def two(monkeypatch: pytest.MonkeyPatch) -> Pool:
    return Pool(monkeypatch)


@pytest.mark.parametrize("to_come", [0, 1])
async def test_it_holds_nothing_of_samples(two: Pool, to_come: int) -> None:
    def sample(number: int) -> weakref.ref[Thing]:
        _of_sample.set(thing := Thing())
        two.to_come[number] = to_come
        two.prepare(number)
        two.sample(number)
        return weakref.ref(thing)

    async with detached_tasks():
        held = [copy_context().run(sample, number) for number in range(2)]
        await started(two, 2 * to_come)
        gc.collect()
        assert [each() for each in held] == [None, None]
        assert sorted(two.started) == [f"s{number}" for number in range(2) if to_come]


async def test_a_configuration_of_which_no_sample_will_come_is_forgotten(two: Pool) -> None:
    async with detached_tasks():
        for number in range(200):
            two.to_come[number] = 0
            two.prepare(number)
            two.sample(number)
        assert not two.pool._kinds


async def test_a_sample_that_knows_of_itself_alone_does_not_end_what_others_want(two: Pool) -> None:
    async with detached_tasks():
        two.prepare(1)
        for known in (1, None):
            two.sample(1, lambda known=known: known)  # type: ignore[misc]
            two.sample(1, lambda: 0)
            assert two.pool._kinds
        assert two.pool._kinds[0].to_come() is None
        assert two.pool._held == 2


@pytest.mark.parametrize("fails", [None, RuntimeError("what nobody expects")])
async def test_what_others_leave_gives_its_place_away_as_soon_as_it_is_gone(
    two: Pool, fails: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "proctor.sandbox")
    two.to_come = {1: 2, 2: 2}
    two.fails = fails
    async with detached_tasks():
        two.prepare(1)
        two.sample(1)
        await started(two, 2)
        two.to_come[1] = 0
        two.prepare(2)
        two.sample(2)
        assert len(two.started) == 2, "there are never more than two"
        await started(two, 4)
    assert sorted(two.started) == ["s1", "s1", "s2", "s2"] and len(two.removed) == 2
    assert ("could not be removed (what nobody expects)" in caplog.text) == (fails is not None)


async def started(two: Pool, count: int) -> None:
    with anyio.fail_after(PATIENCE):
        while len(two.started) < count:
            await checkpoint()


async def stale(two: Pool) -> None:
    """Two that are being removed, since no sample of theirs will come."""
    two.to_come = {1: 2, 2: 2}
    two.prepare(1)
    two.sample(1)
    await started(two, 2)
    two.to_come[1] = 0
    two.may_go = anyio.Event()
    two.prepare(2)
    two.sample(2)


async def test_the_end_waits_for_removals_that_are_under_way(two: Pool) -> None:
    ended = []

    async def close() -> None:
        await two.pool.close("task 2")
        ended.append(len(two.removed))

    async with detached_tasks():
        await stale(two)
        async with anyio.create_task_group() as group:
            group.start_soon(close)
            for _ in range(20):
                await checkpoint()
            assert not ended
            two.may_go.set()
        assert ended == [2]
        assert len(two.started) == 2, "nothing is started for what is closed"


async def test_the_end_waits_so_long_and_not_again_for_each_task(
    two: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "proctor.sandbox")
    async with detached_tasks():
        await stale(two)
        monkeypatch.setattr(_warm, "_CLOSE_SECONDS", 0.01)
        await two.pool.close("task 1")
        monkeypatch.setattr(_warm, "_CLOSE_SECONDS", 1000.0)
        with anyio.fail_after(PATIENCE):
            await two.pool.close("task 2")
        assert "containers may be left; `proctor sandbox cleanup docker`" in caplog.text
        two.may_go.set()


def test_the_end_keeps_within_the_time_that_the_core_gives() -> None:
    assert _warm._CLOSE_SECONDS + _driver._SETTLE_SECONDS < CLEANUP_SECONDS


@pytest.mark.parametrize("settled", [True, False])
async def test_that_something_may_be_left_is_said(
    settled: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "proctor.sandbox")
    driver = DockerDriver()

    async def settle(seconds: float) -> bool:
        await checkpoint()
        return settled

    monkeypatch.setattr(driver.engine, "settle", settle)

    await driver.task_cleanup("quiz", None, True)

    assert ("containers may be left; `proctor sandbox cleanup docker`" in caplog.text) != settled
