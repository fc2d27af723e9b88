"""The same with logs in an object store that is slow, refuses and cuts connections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kill_outcome import Judge
from kill_places import ObjectStore
from kill_plan import plan_of
from kill_server import CountingServer

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
def test_a_run_that_is_killed_and_resumed_comes_to_what_it_would_have_come_to(
    server: CountingServer, store: ObjectStore, tmp_path: Path, seed: int
) -> None:
    judge = Judge(tmp_path, server)
    assert judge.play(plan_of(seed, remote=True), store.bucket(seed)).faults == []
