"""The same with logs in an object store that is slow, refuses and cuts connections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kill_outcome import Judge
from kill_places import ObjectStore
from kill_plan import plan_of

SEEDS = range(3)


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with ObjectStore() as store:
        yield store


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_is_killed_and_resumed_comes_to_what_it_would_have_come_to(
    judge: Judge, store: ObjectStore, seed: int
) -> None:
    assert judge.play(plan_of(seed, remote=True), store.bucket(seed)).faults == []
