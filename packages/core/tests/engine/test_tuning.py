from __future__ import annotations

import gc
import sys

import pytest

from proctor.engine._tuning import tuned_interpreter


@pytest.mark.parametrize("first_out", [0, 1])
def test_the_last_run_of_several_restores_what_was_there(first_out: int) -> None:
    before = gc.get_threshold(), sys.getswitchinterval()
    runs = [tuned_interpreter(), tuned_interpreter()]
    for run in runs:
        run.__enter__()
    assert gc.get_threshold() != before[0]
    tuned = gc.get_threshold(), sys.getswitchinterval()
    runs.pop(first_out).__exit__(None, None, None)
    assert (gc.get_threshold(), sys.getswitchinterval()) == tuned
    runs.pop().__exit__(None, None, None)
    assert (gc.get_threshold(), sys.getswitchinterval()) == before
    assert gc.get_freeze_count() == 0
