"""``kill -9`` at seeded moments of a real run against a server that counts: nothing acknowledged is lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from kill_plan import plan_of
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
