"""What a score must not hide: samples without a target, keys that no score has, native code of the other back-end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from engine_runs import answers

from proctor import Epochs, Task
from proctor.contracts import UsageError
from proctor.dataset import IterableDataset, Sample
from proctor.display import report_text, unit_from_log
from proctor.engine import recompute_metrics
from proctor.engine import score as rescore
from proctor.schema import EvalLog, Value
from proctor.scorer import (
    Metric,
    Score,
    Scorer,
    Target,
    accuracy,
    grouped,
    includes,
    match,
    mean,
    metric,
    scorer,
    stderr,
)
from proctor.solver import Generate, Solver, TaskState, solver

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


def test_a_group_counts_the_samples_that_it_lost_and_no_others(run: Run) -> None:
    samples = [
        Sample(id=place, input=f"What is {place}?", target=str(place), metadata={"g": "ab"[place % 2]})
        for place in range(6)
    ]

    @solver
    def shaky() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if state.sample_id == 3:
                raise OSError("lost")
            return await generate(state)

        return solve

    task = Task(
        dataset=samples,
        solver=shaky(),
        scorer=includes(),
        metrics=[accuracy(), grouped(accuracy(), "g"), grouped(stderr(), "g")],
        epochs=2,
    )
    [log] = run(task, model=answers(), fail_on_error=False)
    assert [(one.name, one.scored, one.total, one.partial) for one in unit_from_log(log).results] == [
        ("accuracy", 5, 6, True),
        ("accuracy[a]", 3, 3, False),
        ("accuracy[b]", 2, 3, True),
        ("accuracy[all]", 5, 6, True),
    ]
    again = recompute_metrics(log.location)
    assert again.results is not None and log.results is not None
    assert again.results.scores == log.results.scores


@pytest.mark.parametrize("overall", ["samples", "groups"])
def test_a_group_that_lost_all_its_samples_has_a_row_without_a_figure(
    run: Run, overall: Literal["samples", "groups"]
) -> None:
    places = {1: "a", 2: "b", 3: "c", 4: "b", 5: "c"}
    samples = [Sample(id=id, input=f"What is {id}?", target=str(id), metadata={"g": g}) for id, g in places.items()]

    @solver
    def losing() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if state.metadata["g"] == "a":
                raise OSError("lost")
            return await generate(state)

        return solve

    @scorer(metrics=[grouped(accuracy(), "g", all=overall), grouped(stderr(), "g", all=False)])
    def choosy() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            return Score.unscored("refusal") if state.metadata["g"] == "b" else Score(value="C")

        return score

    task = Task(dataset=samples, solver=losing(), scorer=choosy())
    [log] = run(task, model=answers(), fail_on_error=False)
    shown = unit_from_log(log)
    assert [(one.name, one.scored, one.total, one.partial) for one in shown.results] == [
        ("accuracy[c]", 2, 2, False),
        ("accuracy[all]", 2, 5, True),
        ("accuracy[a]", 0, 1, True),
        ("accuracy[b]", 0, 2, True),
    ]
    assert [math.isnan(one.value) for one in shown.results] == [False, False, True, True]
    assert shown.results[1].value == 1.0  # also as the mean of groups: of those that have a value
    assert "  accuracy[a]    none           partial: 0 / 1 scored" in report_text([shown])
    again = recompute_metrics(log.location).results
    assert again is not None and log.results is not None
    assert str(again.scores) == str(log.results.scores)  # NaN is not equal to itself


def test_a_reducer_that_is_named_twice_is_refused(run: Run) -> None:
    task = Task(dataset=[Sample(input="What is 1?", target="1")], scorer=includes())
    with pytest.raises(UsageError, match="mean was given twice"):
        run(task, model=answers(), epochs_reducer=["mean", "mean"])


@scorer(metrics={"a": [mean()], "b": [mean()]})
def parts() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        values: dict[Any, Value] = {1: {"a": 1, "b": 0}, 2: {"a": 1}, 3: float("nan")}
        return Score(value=values[state.sample_id])

    return score


def test_a_score_that_is_nan_and_a_key_that_is_not_there_have_reasons(run: Run) -> None:
    samples = [Sample(id=place, input=f"What is {place}?", target=str(place)) for place in (1, 2, 3)]
    [log] = run(Task(dataset=samples, scorer=parts()), model=answers())
    first, second = unit_from_log(log).results
    assert (first.scored, first.total, dict(first.missing)) == (2, 3, {"unscored:nan": 1})
    assert (second.scored, second.total, dict(second.missing)) == (1, 3, {"unscored:nan": 1, "unscored:no_key": 1})


@scorer(metrics=[accuracy()])
def told() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={1: "banana", 2: "C", 3: "0.5"}[int(str(state.sample_id))])

    return score


def test_text_that_is_no_number_is_no_score_and_is_told_once(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    samples = [Sample(id=place, input=f"What is {place}?", target=str(place)) for place in (1, 2, 3)]
    [log] = run(Task(dataset=samples, scorer=told()), model=answers(), epochs=2)
    [shown] = unit_from_log(log).results
    assert (shown.value, shown.scored, shown.total) == (0.75, 2, 3)
    assert dict(shown.missing) == {"unscored:not_a_number": 2} and log.status == "success"
    [text] = [record.getMessage() for record in caplog.records if "is no number" in record.getMessage()]
    assert text.startswith("the scorer told gave 'banana' for sample 1, which is no number")
    again = recompute_metrics(log.location)
    assert again.results == log.results
    scored = rescore(log.location, told(), output=f"{log.location}-scored.eval")
    assert [dict(one.missing) for one in unit_from_log(scored).results][1:] == [{"unscored:not_a_number": 2}]


def test_text_counts_as_missing_beside_each_reducer_of_numbers_whatever_else_there_is(run: Run) -> None:
    samples = [Sample(id=place, input=f"What is {place}?", target=str(place)) for place in (1, 2, 3)]
    epochs = Epochs(2, ["mean", "mode", "max", "at_least_1"])
    [log] = run(Task(dataset=samples, scorer=told(), epochs=epochs), model=answers())
    assert log.results is not None
    rows = {row.reducer: row for row in log.results.scores}
    assert {name: row.metrics["accuracy"].value for name, row in rows.items() if name != "mode"} == {
        "mean": 0.75,
        "max": 0.75,
        "at_least_1": 0.5,
    }
    assert {name: row.unscored_samples for name, row in rows.items() if name != "mode"} == dict.fromkeys(
        ("mean", "max", "at_least_1"), 1
    )


def test_text_may_be_what_is_counted_where_nothing_makes_a_number_of_it(run: Run) -> None:
    @metric(scores="unreduced")
    def bananas() -> Metric:
        return lambda scores: float(sum(score.score.value == "banana" for score in scores))

    samples = [Sample(id=place, input=f"What is {place}?", target=str(place)) for place in (1, 2, 3)]
    [log] = run(Task(dataset=samples, scorer=told(), metrics=[bananas()]), model=answers())
    [shown] = unit_from_log(log).results
    assert (shown.value, shown.partial) == (1.0, False)


_CITIES: dict[int, Value] = {
    1: {"a": "C", "b": "banana", "note": "kiwi"},
    2: {"a": "I", "b": "0.5", "note": "fig"},
    3: {"a": "yes", "b": 1, "note": "plum"},
}


@scorer(metrics={"a": [mean()], "b": [mean(), stderr()]})
def told_by_key() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=_CITIES[int(str(state.sample_id))])

    return score


@pytest.mark.parametrize("reducer", [None, "mean"])
def test_text_of_a_key_that_is_no_number_is_no_score_of_that_key(
    run: Run, caplog: pytest.LogCaptureFixture, reducer: str | None
) -> None:
    samples = [Sample(id=place, input=f"What is {place}?", target=str(place)) for place in (1, 2, 3)]
    task = Task(dataset=samples, scorer=told_by_key(), epochs=Epochs(2, reducer) if reducer else 2)
    [log] = run(task, model=answers())
    a, b = unit_from_log(log).results
    assert (a.value, a.scored, a.total, dict(a.missing)) == (pytest.approx(2 / 3), 3, 3, {})
    assert (b.value, b.scored, b.total, dict(b.missing)) == (0.75, 2, 3, {"unscored:not_a_number": 2})
    assert (a.partial, b.partial, log.status) == (False, True, "success")
    [text] = [record.getMessage() for record in caplog.records if "is no number" in record.getMessage()]
    assert text.startswith("the scorer told_by_key gave 'banana' as 'b' for sample 1, which is no number")
    assert recompute_metrics(log.location).results == log.results


def test_text_of_a_key_in_one_epoch_of_several_leaves_the_others(run: Run) -> None:
    @scorer(metrics={"*": [mean()]})
    def wavering() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value={"b": "banana" if state.epoch == 1 else 1 if state.epoch == 2 else math.nan})

        return score

    task = Task(dataset=[Sample(id=1, input="What is 1?", target="1")], scorer=wavering(), epochs=3)
    [log] = run(task, model=answers())
    [shown] = unit_from_log(log).results
    assert (shown.value, shown.scored, dict(shown.missing)) == (1.0, 1, {"unscored:not_a_number": 1})


def test_text_of_a_key_may_be_what_is_counted_where_nothing_makes_a_number_of_it(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    @metric(scores="unreduced")
    def bananas() -> Metric:
        return lambda scores: float(sum(score.score.value == "banana" for score in scores))

    samples = [Sample(id=place, input=f"What is {place}?", target=str(place)) for place in (1, 2, 3)]
    [log] = run(Task(dataset=samples, scorer=told_by_key(), metrics={"b": [bananas()]}), model=answers())
    [shown] = unit_from_log(log).results
    assert (shown.value, shown.partial) == (1.0, False)
    [log] = run(Task(dataset=samples, scorer=told_by_key(), epochs=Epochs(1, "mode")), model=answers())
    assert [dict(one.missing) for one in unit_from_log(log).results] == [{}, {}]  # as it is: the mode is of text, too
    assert not [record for record in caplog.records if "without a score" in record.getMessage()]
