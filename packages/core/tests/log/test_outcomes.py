"""What a sample counts as: the same from a sample as from its summary, and every missing score has its reason."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.log import Outcomes, summarise
from proctor.schema import EvalError, EvalResults, EvalRetryError, EvalSample, EvalSampleLimit, Provenance, Score

ERROR = EvalError(message="OSError('gone')", traceback="", traceback_ansi="")


def a_sample(id: int, **fields: Any) -> EvalSample:
    return EvalSample(id=id, epoch=1, input="q", target="a", **fields)


SAMPLES = [
    a_sample(1, scores={"match": Score(value="C"), "judge": Score(value=1.0)}),
    a_sample(2, scores={"match": Score(value="I"), "judge": Score.unscored("grader_failed")}),
    a_sample(3, error=ERROR),
    a_sample(4, error=EvalError(message="CancelledError()", traceback="", traceback_ansi="")),
    a_sample(5, scores={"match": Score(value="C")}, limit=EvalSampleLimit(type="token", limit=10)),
    a_sample(
        6,
        scores={"match": Score(value="C"), "judge": Score(value=0.0)},
        invalidation=Provenance(author="me", timestamp="2026-11-29T00:00:00Z"),
    ),
    a_sample(
        7,
        scores={"match": Score(value="C"), "judge": Score(value=0.5)},
        error_retries=[EvalRetryError(**ERROR.to_dict())],
    ),
]


@pytest.mark.parametrize("form", [lambda sample: sample, summarise], ids=["samples", "summaries"])
def test_every_outcome_is_counted_and_every_missing_score_has_its_reason(form: Any) -> None:
    outcomes = Outcomes(["match", "judge"])
    for sample in SAMPLES:
        outcomes.add(form(sample))
    results = EvalResults(metadata={"of": "the task's own"})
    outcomes.complete(results, planned=10)
    assert (results.total_samples, results.completed_samples) == (10, 4)
    lost = {"error:OSError": 1, "cancelled": 1, "invalidated": 1, "not_run": 3}
    assert results.metadata == {
        "of": "the task's own",
        "proctor": {
            "outcomes": {
                "total": 10,
                "completed": 4,
                "cancelled": 1,
                "invalidated": 1,
                "limit:token": 1,
                "unscored:grader_failed": 1,
                "unscored:no_score": 1,
                "error:OSError": 1,
                "retried": 1,
                "not_run": 3,
            },
            "partial": {
                "match": lost,
                "judge": {**lost, "unscored:grader_failed": 1, "unscored:no_score": 1},
            },
        },
    }
    # each scorer's scores and what is missing make up what was planned
    assert 4 + sum(lost.values()) == 10


def test_nothing_is_called_partial_when_every_score_is_there() -> None:
    outcomes = Outcomes(["match"])
    outcomes.add(SAMPLES[0])
    results = EvalResults(metadata={"proctor": {"partial": {"match": {"not_run": 1}}, "kept": 1}})
    outcomes.complete(results)
    assert results.metadata == {"proctor": {"outcomes": {"total": 1, "completed": 1}, "kept": 1}}
