"""The same with logs in an object store that is slow, refuses and cuts connections."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from kill_places import ObjectStore
from kill_plan import plan_of
from kill_server import CountingServer
from kill_world import World

SEEDS = range(3)


@pytest.fixture(scope="module")
def server() -> Iterator[CountingServer]:
    with CountingServer() as server:
        yield server


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with ObjectStore() as store, pytest.MonkeyPatch.context() as patch:
        for name, value in store.env.items():
            patch.setenv(name, value)
        yield store


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_before_a_kill_is_read_from_the_bucket(
    server: CountingServer, store: ObjectStore, tmp_path: Path, seed: int
) -> None:
    # given a run that is killed while its log goes to a bucket
    world = World(tmp_path, server, plan_of(seed, remote=True), store.bucket(seed))
    assert world.evaluate(world.plan.moments[0]) == -signal.SIGKILL, world.output
    # then every sample that it had acknowledged is read from there, and in what is recovered of it
    for location in world.logs:
        assert world.check_readable(location) + world.check_recovered(location) == []
