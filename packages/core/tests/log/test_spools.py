"""What a log waits for in temporary files."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from log_samples import sample

from proctor.log._spool import ReductionSpool, SampleSpool
from proctor.schema import EvalSampleScore


def reductions() -> ReductionSpool:
    spool = ReductionSpool()
    spool.add("match", None, EvalSampleScore(value=1.0, sample_id=1))
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
