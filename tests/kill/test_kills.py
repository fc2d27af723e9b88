"""``kill -9`` at seeded moments of a real run against a server that counts: nothing acknowledged is lost."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kill_plan import Moment, Plan, plan_of
from kill_server import CountingServer
from kill_world import World

SEEDS = range(10)  # of which each has another kind of moment; `nox -s kill` runs more


@pytest.fixture(scope="module")
def server() -> Iterator[CountingServer]:
    with CountingServer() as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_before_a_kill_is_read_from_the_log(
    server: CountingServer, tmp_path: Path, seed: int
) -> None:
    # given a run that is killed at the seed's moment
    world = World(tmp_path, server, plan_of(seed))
    assert world.evaluate(world.plan.moments[0]) == -signal.SIGKILL, world.output
    # then every sample that it had acknowledged is in its log, and in what is recovered of it
    [location] = world.logs
    assert world.check_readable(location) + world.check_recovered(location) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other kernels let a process have more memory than its limit")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_what_was_acknowledged_before_the_memory_was_used_up_is_read_from_the_log(
    server: CountingServer, tmp_path: Path, backend: str
) -> None:
    # given a run whose process gets no more memory from the 20th sample on
    world = World(tmp_path, server, Plan(0, "eval", backend, 1, ()))
    # then it ends by itself: it gets by, fails in an orderly way, or is aborted by a library that can't go on
    assert world.evaluate(Moment("memory", 20)) in (0, 1, -signal.SIGABRT, -signal.SIGSEGV), world.output
    assert len(world.acknowledged) >= 20
    [location] = world.logs
    assert world.check_readable(location) + world.check_recovered(location) == []
