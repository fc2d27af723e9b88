"""``kill -9`` while a log is scored by a grader that costs money: what was graded is not asked for again."""

from __future__ import annotations

import pytest
from kill_places import ObjectStore
from kill_score import ScoreJudge
from kill_server import CountingServer


@pytest.fixture(scope="module")
def judge(server: CountingServer, tmp_path_factory: pytest.TempPathFactory) -> ScoreJudge:
    return ScoreJudge(tmp_path_factory.mktemp("score"), server)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_scoring_that_is_killed_goes_on_from_what_it_had(judge: ScoreJudge, seed: int) -> None:
    assert judge.play(seed) == []


@pytest.mark.slow
def test_so_does_one_whose_log_goes_to_an_object_store(judge: ScoreJudge) -> None:
    with ObjectStore() as store:
        assert judge.play(1, store.bucket(1)) == []
