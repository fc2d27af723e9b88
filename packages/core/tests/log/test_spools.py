"""What a log waits for in temporary files."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from log_samples import sample

from proctor.log._spool import ReductionSpool, SampleSpool
from proctor.schema import EvalSampleScore


def reductions(count: int = 100) -> ReductionSpool:
    """More than are held in memory, unless ``count`` says fewer."""
    spool = ReductionSpool()
    for number in range(count):
        spool.add("match", None, EvalSampleScore(value=1.0, sample_id=number))
    return spool


def samples() -> SampleSpool:
    spool = SampleSpool()
    spool.add(sample(1))
    return spool


@pytest.mark.parametrize("make", [reductions, samples])
def test_the_file_goes_with_a_spool_that_nobody_closed(make: Callable[[], ReductionSpool | SampleSpool]) -> None:
    spool = make()
    file = next(iter(spool._files.values())) if isinstance(spool, ReductionSpool) else spool._file

    del spool

    assert file.closed


@pytest.mark.parametrize(("first", "second"), [(1, 1), (64, 1), (100, 100), (0, 3), (3, 0)])
def test_no_score_is_lost_and_their_order_is_kept(first: int, second: int) -> None:
    spool = reductions(first)
    spool.extend(reductions(second))

    found = json.loads(b"".join(spool.chunks()))

    assert [each["sample_id"] for group in found for each in group["samples"]] == [*range(first), *range(second)]
    assert all(group["scorer"] == "match" for group in found)
