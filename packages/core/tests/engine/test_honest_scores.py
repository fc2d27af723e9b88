"""What a score must not hide: samples without a target, keys that no score has, native code of the other back-end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
from engine_runs import answers

from proctor import Task
from proctor.contracts import UsageError
from proctor.dataset import IterableDataset, Sample
from proctor.schema import EvalLog
from proctor.scorer import includes, match

Run = Callable[..., list[EvalLog]]


def test_a_task_whose_samples_have_no_targets_is_refused_before_it_asks_a_model(run: Run) -> None:
    model = answers()
    task = Task(dataset=[Sample(input="What is 1?"), Sample(input="What is 2?")], scorer=includes(), name="sums")
    with pytest.raises(UsageError, match=r"task 'sums': the scorer includes compares answers with targets"):
        run(task, model=model)
    [log] = run(task, model=model, score=False)
    assert log.status == "success"


def test_a_sample_without_a_target_is_counted_beside_the_score(run: Run) -> None:
    task = Task(dataset=[Sample(input="What is 1?", target="1"), Sample(input="What is 2?")], scorer=match())
    [log] = run(task, model=answers())
    assert log.results is not None and log.results.metadata is not None
    [row] = log.results.scores
    assert (row.scored_samples, row.unscored_samples, row.metrics["accuracy"].value) == (1, 1, 1.0)
    assert log.results.metadata["proctor"]["outcomes"]["unscored:no_target"] == 1


def test_samples_that_come_one_by_one_stay_unscored(run: Run) -> None:
    def make() -> Iterator[Sample]:
        yield Sample(input="What is 1?")

    [log] = run(Task(dataset=IterableDataset(make), scorer=includes()), model=answers())
    assert log.results is not None
    assert math.isnan(log.results.scores[0].metrics["accuracy"].value)
