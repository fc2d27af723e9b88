"""``kill -9`` at any instant: what was acknowledged is in the log, before and after ``proctor log recover``."""

from __future__ import annotations

from pathlib import Path

import pytest
from killed_log import killed_log

from proctor.log import FileStore, read_eval_log, recover_eval_log


@pytest.mark.slow
@pytest.mark.parametrize("acknowledged", [1, 37, 400, 1500])
@pytest.mark.parametrize("format", ["eval", "json"])
def test_acknowledged_samples_survive(tmp_path: Path, format: str, acknowledged: int) -> None:
    # given a run that was killed
    location, ids = killed_log(tmp_path, format, acknowledged)
    assert not FileStore().live(location)
    # when its log is recovered
    target = recover_eval_log(location)
    # then every acknowledged sample is there, once, whole
    samples = read_eval_log(target).samples or []
    found = [one.id for one in samples]
    assert read_eval_log(target, header_only=True).eval.dataset.sample_ids == sorted(set(found))
    assert set(ids) <= set(found) and len(set(found)) == len(found)
    assert all(one.scores and len(one.events) == 13 for one in samples)
    if format == "eval":  # and it was there before
        assert set(ids) <= {one.id for one in read_eval_log(location).samples or []}
