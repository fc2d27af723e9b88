from __future__ import annotations

import pytest

from proctor.engine import ErrorPolicy, exit_code
from proctor.engine._errors import eval_error
from proctor.log import error_kind
from proctor.schema import EvalConfig, EvalDataset, EvalError, EvalLog, EvalSpec


@pytest.mark.parametrize(
    ("limit", "errors", "total", "exceeded"),
    [
        (True, 0, 10, False),
        (True, 1, 10, True),
        (False, 10, 10, False),
        (0.2, 2, 10, False),
        (0.2, 3, 10, True),
        (0.2, 3, None, False),
        (3, 3, 10, False),
        (3, 4, 10, True),
        (1, 1, 10, False),
        (1.0, 2, 10, True),
        (0, 1, 10, True),
    ],
)
def test_shares_counts_and_switches(limit: float, errors: int, total: int | None, exceeded: bool) -> None:
    assert ErrorPolicy(limit).exceeded(errors, total) is exceeded


def _log(status: str, error: bool = False) -> EvalLog:
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="t", model="m/n", dataset=EvalDataset(), config=EvalConfig()
    )
    failed = EvalError(message="x", traceback="", traceback_ansi="") if error else None
    return EvalLog(status=status, eval=spec, error=failed)


def test_exit_codes() -> None:
    good, over, aborted = _log("success"), _log("error"), _log("error", error=True)
    assert exit_code([good, good]) == 0
    assert exit_code([good, over]) == 3
    assert exit_code([over, aborted]) == exit_code([aborted, over]) == 1
    assert exit_code([good, _log("cancelled"), aborted]) == 130
    assert exit_code([_log("started")]) == 1


def test_an_error_keeps_its_traceback_but_no_local_values() -> None:
    def fails() -> None:
        secret = "s3cr3t"
        raise ValueError(f"length {len(secret)}")

    try:
        fails()
    except ValueError as error:
        kept = eval_error(error)
    assert kept.message == "ValueError('length 6')"
    assert "in fails" in kept.traceback
    assert "s3cr3t'" not in kept.traceback.replace('secret = "s3cr3t"', "")
    assert error_kind(kept) == "ValueError"


def test_a_huge_traceback_is_cut() -> None:
    kept = eval_error(ValueError("x" * 1_000_000))
    assert len(kept.traceback) < 110_000
