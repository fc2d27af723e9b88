from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import UsageError
from proctor.schema import EvalSampleScore, EvalScore
from proctor.scorer import (
    Metric,
    ResultsBuilder,
    SampleScore,
    Score,
    Scorer,
    ScoreReducer,
    accuracy,
    answer,
    bootstrap_stderr,
    choice,
    create_reducers,
    eval_scorers,
    grouped,
    includes,
    match,
    mean,
    mean_score,
    metric,
    mode_score,
    score_reducer,
    scorer,
    scorer_names,
    std,
    stderr,
    var,
)

NAN = math.nan


def made(metrics: Any, name: str = "mine") -> Scorer:
    @scorer(metrics=metrics, name=name)
    def make() -> Scorer:
        async def score(state: Any, target: Any) -> Score:
            raise AssertionError("these tests give the scores themselves")

        return score

    return make()


@metric
def count() -> Metric:
    return lambda scores: float(len(scores))


@metric
def pair() -> Metric:
    return lambda scores: {"x": 1.0, "y": float(len(scores))}


@metric
def several() -> Metric:
    return lambda scores: [1.0, 2.0]


@metric
def cats() -> Metric:
    """As in the logged run: how many samples have ids that end in an even and an odd number."""

    def compute(scores: list[SampleScore]) -> dict[str, Any]:
        odd = sum(int(str(score.sample_id)[1:]) % 2 for score in scores)
        return {"even": len(scores) - odd, "odd": odd}

    return compute


def build(one: Scorer, values: Sequence[Sequence[Any]], **options: Any) -> list[EvalScore]:
    """The results of a scorer that gave ``values[sample][epoch]`` (``...``: nothing)."""
    epochs = len(values[0])
    builder = ResultsBuilder([one], epochs=epochs, **options)
    (name,) = scorer_names([one])
    for number, row in enumerate(values):
        for epoch, value in enumerate(row, 1):
            scores = {} if value is ... else {name: Score(value=value)}
            builder.add(number, epoch, scores, {"g": "ab"[number % 2]})
    return builder.results(len(values) * epochs, len(values) * epochs).scores


def values_of(row: EvalScore) -> dict[str, float]:
    return {key: one.value for key, one in row.metrics.items()}


# What real runs logged ------------------------------------------------------------------------------------------------

LOGGED = json.loads(Path(__file__).with_name("logged_results.json").read_text("utf-8"))
SCORERS: dict[str, Any] = {
    "epochs3_reducers": lambda: [answer("line")],
    "grouped_metrics": lambda: [
        made(
            [
                grouped(accuracy(), "category"),
                stderr(cluster="category"),
                bootstrap_stderr(num_samples=50),
                var(),
                cats(),
            ],
            "match",
        )
    ],
    "nan_scores": lambda: [made([mean(), stderr(), accuracy()], "nan_scorer")],
    "nan_all": lambda: [made([mean(), accuracy(), stderr()], "allnan")],
    "inf_scores": lambda: [made([mean()], "infscorer")],
    "multi_scorer": lambda: [match(), includes(), made([mean(), std()], "length_score")],
    "multiple_choice": lambda: [choice()],
    "error_threshold_ok": lambda: [match()],
}


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_results_of_logged_scores_are_those_that_the_log_has(name: str, seed: int | None) -> None:
    logged = LOGGED[name]
    scorers = SCORERS[name]()
    reductions: list[tuple[str, str | None, EvalSampleScore]] = []
    builder = ResultsBuilder(
        scorers,
        reducers=None if logged["reducers"] is None else create_reducers(logged["reducers"]),
        epochs=logged["epochs"],
        on_reduction=lambda *reduction: reductions.append(reduction),
    )
    samples = list(logged["samples"])
    if seed is not None:
        random.Random(seed).shuffle(samples)
    for sample in samples:
        scores = {key: Score(**score) for key, score in (sample["scores"] or {}).items()}
        position = logged["samples"].index(sample)
        builder.add(sample["id"], sample["epoch"], scores, sample["metadata"], position)
    results = builder.results(logged["results"]["total_samples"], logged["results"]["completed_samples"])

    assert_same(json.loads(results.model_dump_json(exclude_none=True)), logged["results"], name)
    for reduction in logged["reductions"]:
        mine = {
            score.sample_id: {
                "sample_id": score.sample_id,
                "value": score.value,
                "answer": score.answer,
                "reason": score.reason,
            }
            for scorer, reducer, score in reductions
            if (scorer, reducer) == (reduction["scorer"], reduction["reducer"])
        }
        assert_same(mine, {score["sample_id"]: score for score in reduction["samples"]}, name)


def assert_same(mine: Any, logged: Any, path: str) -> None:
    if path.endswith(("/bootstrap_stderr/value", "length_score/params")):
        return  # drawn at random there; the argument of a scorer that only the logged run has
    if isinstance(logged, dict):
        if isinstance(mine.get("metadata"), dict) and "metadata" not in logged:
            mine = {key: value for key, value in mine.items() if key != "metadata"}  # our own counts
        assert list(mine) == list(logged) or set(mine) == set(logged), path
        for key, value in logged.items():
            where = f"{path}/{logged['name']}/{key}" if key == "params" and "scorer" in logged else f"{path}/{key}"
            assert_same(mine[key], value, where)
    elif isinstance(logged, list):
        assert len(mine) == len(logged), path
        for index, (one, other) in enumerate(zip(mine, logged, strict=True)):
            assert_same(one, other, f"{path}[{index}]")
    elif isinstance(logged, float) and not isinstance(mine, str):
        number = NAN if mine is None else mine  # a plain JSON reader sees bare NaN as null after pydantic's dump
        assert number == pytest.approx(logged, rel=1e-9, abs=1e-9, nan_ok=True), path
    else:
        assert mine == logged, path


# Rules ---------------------------------------------------------------------------------------------------------------


def test_one_epoch_gives_the_scorers_metrics_of_numbers() -> None:
    (row,) = build(match(), [["C"], ["I"], ["C"]])
    assert (row.name, row.scorer, row.reducer, row.params) == ("match", "match", None, {})
    assert values_of(row) == {"accuracy": pytest.approx(2 / 3), "stderr": pytest.approx(1 / 3)}


def test_unscored_samples_are_counted_apart_and_errored_ones_not_at_all() -> None:
    (row,) = build(match(), [["C"], [NAN], [...]])
    assert (row.scored_samples, row.unscored_samples, row.metrics["accuracy"].value) == (1, 1, 1.0)


def test_without_any_score_metrics_are_nan() -> None:
    (row,) = build(made([accuracy(), count(), several(), grouped(mean(), "g")]), [[NAN], [...]])
    assert (row.scored_samples, row.unscored_samples) == (0, 1)
    assert list(row.metrics) == ["accuracy", "count", "several", "all", "a", "b"]
    assert all(math.isnan(value) for value in values_of(row).values())


def test_epochs_are_reduced_by_their_mean_unless_the_task_says_otherwise() -> None:
    values = [["C", "I"], ["C", "C"]]
    (row,) = build(match(), values)
    assert (row.reducer, row.scored_samples, row.metrics["accuracy"].value) == (None, 2, 0.75)
    rows = build(match(), values, reducers=create_reducers(["at_least_2", "max"]))
    assert [(row.reducer, row.metrics["accuracy"].value) for row in rows] == [("at_least_2", 0.5), ("max", 1.0)]


def test_without_reducers_each_epoch_counts() -> None:
    (row,) = build(match(), [["C", "I"], ["C", NAN]], reducers=[])
    assert (row.reducer, row.scored_samples, row.unscored_samples) == (None, 3, 1)
    assert row.metrics["accuracy"].value == pytest.approx(2 / 3)


def test_epochs_that_never_come_do_not_hold_back_the_others() -> None:
    builder = ResultsBuilder([match()], epochs=3)
    builder.add(1, 2, {"match": Score(value="C")})
    builder.add(2, 1, None)
    (row,) = builder.results(6, 1).scores
    assert (row.scored_samples, row.metrics["accuracy"].value) == (1, 1.0)


@given(
    st.lists(st.lists(st.sampled_from(["C", "I", "P", NAN, ...]), min_size=3, max_size=3), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_samples_end_does_not_matter(values: list[list[Any]], rand: random.Random) -> None:
    def results(shuffled: bool) -> str:
        found: list[str] = []
        builder = ResultsBuilder(
            [made([accuracy(), stderr(), grouped(mean(), "g"), var()])],
            reducers=create_reducers(["mean", "mode", "pass_at_2", "median"]),
            epochs=3,
            on_reduction=lambda name, reducer, score: found.append(f"{reducer} {score.model_dump_json()}"),
        )
        jobs = list(itertools.product(range(len(values)), range(3)))
        if shuffled:
            rand.shuffle(jobs)
        for number, epoch in jobs:
            value = values[number][epoch]
            scores = None if value is ... else {"mine": Score(value=value, answer=str(epoch))}
            builder.add(number, epoch + 1, scores, {"g": number % 2})
        rows = builder.results(0, 0).scores
        told = [
            (row.reducer, row.scored_samples, {key: f"{value:.9g}" for key, value in sorted(values_of(row).items())})
            for row in rows
        ]
        return f"{told} {sorted(found)}"

    assert results(True) == results(False)


def test_metrics_of_several_values_and_of_one_name_get_keys_of_their_own() -> None:
    (row,) = build(made([pair(), several(), count(), count(), pair()]), [["C"], ["I"]])
    told = {key: (one.name, one.group) for key, one in row.metrics.items()}
    assert told == {
        "x": ("x", "pair"),
        "y": ("y", "pair"),
        "several-1": ("1", "several"),
        "several-2": ("2", "several"),
        "count": ("count", None),
        "count2": ("count", None),
        "x2": ("x", "pair"),
        "y2": ("y", "pair"),
    }


DICTS = [[{"a": 1, "b": 0.5}], [{"a": 0, "b": NAN}], [{"a": "C", "b": None}]]


def test_a_dict_of_metrics_gives_a_row_for_each_key() -> None:
    rows = build(made({"a": [mean()], "*": [count()]}), DICTS)
    assert [(row.name, row.scorer, row.scored_samples, row.unscored_samples) for row in rows] == [
        ("a", "mine", 3, 0),
        ("b", "mine", 2, 1),
    ]
    assert [values_of(row) for row in rows] == [{"mean": pytest.approx(2 / 3), "count": 3.0}, {"count": 2.0}]


def test_a_list_may_hold_metrics_of_the_whole_and_of_keys() -> None:
    rows = build(made([count(), {"b": [mean(), pair()]}]), DICTS)
    assert [row.name for row in rows] == ["mine", "b"]
    assert values_of(rows[1]) == {"mean": 0.25, "pair_x": 1.0, "pair_y": 2.0}


def test_an_unscored_sample_is_unscored_in_all_keys() -> None:
    (row,) = build(made({"a": [mean()]}), [[{"a": 1}], [NAN], [...]])
    assert (row.name, row.scored_samples, row.unscored_samples) == ("a", 1, 1)


@pytest.mark.parametrize(
    "metrics", [{"zz": [mean()], "a": [mean()], "y*": [mean()]}, [{"zz": [mean()]}, {"a": [mean()]}]]
)
def test_a_key_that_was_named_and_never_comes_has_a_row_without_scores(metrics: Any) -> None:
    *_, missing, row = build(made(metrics), [[{"a": 1}], [{"a": 0}]])
    assert (missing.name, missing.scored_samples, missing.unscored_samples) == ("zz", 0, 2)
    assert math.isnan(missing.metrics["mean"].value)
    assert (row.name, row.scored_samples, row.unscored_samples) == ("a", 2, 0)


def test_a_key_that_some_scores_lack_is_unscored_there() -> None:
    (row,) = build(made({"a": [mean()]}), [[{"a": 1}], [{"A": 1}], [{}]])
    assert (row.scored_samples, row.unscored_samples, values_of(row)) == (1, 2, {"mean": 1.0})


def test_metrics_of_keys_need_dicts() -> None:
    builder = ResultsBuilder([made([{"a": [mean()]}, mean()]), made([mean()], "other")])
    builder.add(1, 1, {"mine": Score(value=1), "other": Score(value=1)})
    whole, key, other = builder.results(1, 1).scores
    assert (values_of(whole), values_of(key), values_of(other)) == ({"mean": 1.0}, {}, {"mean": 1.0})
    [failure] = builder.failures
    assert (failure.score, failure.metric) == ("a", "mean")
    assert "return a dict" in failure.reason


def test_the_tasks_metrics_take_the_place_of_the_scorers() -> None:
    (row,) = build(match(), [["C"], ["I"]], metrics=[mean()])
    assert values_of(row) == {"mean": 0.5}


def test_function_metrics_see_the_reduced_scores_once_at_the_end() -> None:
    seen: list[list[SampleScore]] = []

    @metric
    def watching() -> Metric:
        def compute(scores: list[SampleScore]) -> float:
            seen.append(scores)
            return 1.0

        return compute

    build(made([watching()]), [["C", "I"], ["I", "I"], [NAN, NAN]])
    (scores,) = seen
    assert [(score.sample_id, score.score.value, score.sample_metadata) for score in scores] == [
        (0, 0.5, {"g": "a"}),
        (1, 0.0, {"g": "b"}),
    ]


def test_a_metric_may_ask_for_the_score_of_each_epoch() -> None:
    @metric(scores="unreduced")
    def each() -> Metric:
        return lambda scores: float(len([score for score in scores if score.score.value == "C"]))

    (row,) = build(made([accuracy(), each()]), [["C", "C"], ["C", "I"]])
    assert values_of(row) == {"accuracy": 0.75, "each": 3.0}


def test_scores_of_a_function_metric_may_hold_what_no_pickle_can() -> None:
    builder = ResultsBuilder([made([count()])])
    for number in range(100):
        builder.add(number, 1, {"mine": Score(value=1)}, {"f": lambda: None})
    assert values_of(builder.results(100, 100).scores[0]) == {"count": 100.0}


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: "hello", "it gave 'hello', which is no number"),
        (lambda: {"a": [1]}, "it gave [1], which is no number"),
    ],
)
def test_a_failing_metric_is_named_and_the_others_stand(result: Callable[[], Any], reason: str) -> None:
    @metric
    def broken() -> Metric:
        return lambda scores: result()

    builder = ResultsBuilder([made([broken(), accuracy()]), made([mean()], "other")])
    builder.add(1, 1, {"mine": Score(value="C"), "other": Score(value=0.5)})
    results = builder.results(1, 1)
    assert [values_of(row) for row in results.scores] == [{"accuracy": 1.0}, {"mean": 0.5}]
    assert results.headline is not None and results.headline.metric == "accuracy"
    assert results.metadata == {
        "proctor": {
            "failed_metrics": [
                {"scorer": "mine", "score": "mine", "metric": "broken", "reducer": None, "reason": reason}
            ]
        }
    }


def test_scores_that_no_reducer_takes_leave_other_reducers_alone() -> None:
    @score_reducer
    def picky() -> ScoreReducer:
        def reduce(scores: list[Score]) -> Score:
            raise ValueError("not these")

        return reduce

    builder = ResultsBuilder([made([mean()])], reducers=[picky(), mean_score()], epochs=2)
    for epoch in (1, 2):
        builder.add(1, epoch, {"mine": Score(value=1)})
    assert [values_of(row) for row in builder.results(2, 2).scores] == [{}, {"mean": 1.0}]
    [failure] = builder.failures
    assert (failure.metric, failure.reducer) == ("mean", "picky")
    assert failure.reason == "ValueError: not these (while the epochs of sample 1 were reduced for the scorer mine)"


def test_each_group_counts_its_own_samples() -> None:
    values = [["C", "C"], ["I", ...], [..., ...], [NAN, NAN], ["C", NAN], ["C", "C"]]
    (row,) = build(made([accuracy(), grouped(accuracy(), "g")]), values)
    counts = {key: (one.metadata or {}).get("proctor") for key, one in row.metrics.items()}
    assert counts == {
        "accuracy": None,
        "a": {"scored": 2, "planned": 3, "missing_epochs": 1},
        "b": {"scored": 2, "planned": 3, "missing_epochs": 1},
        "all": {"scored": 4, "planned": 6, "missing_epochs": 2},
    }


def test_of_a_group_whose_samples_were_not_all_seen_nobody_says_how_many_were_planned() -> None:
    builder = ResultsBuilder([made([grouped(accuracy(), "g")])])
    builder.add(1, 1, {"mine": Score(value="C")}, {"g": "a"})
    [row] = builder.results(2, 1).scores
    assert row.metrics["a"].metadata == {"proctor": {"scored": 1}}


def test_names_are_unique_and_short() -> None:
    assert scorer_names([match(), match(), includes(), match(), made([], "pkg/own")]) == [
        "match",
        "match1",
        "includes",
        "match2",
        "own",
    ]


def test_the_headline_is_the_first_metric_of_the_first_row() -> None:
    builder = ResultsBuilder([match()], reducers=[mode_score()])
    builder.add(1, 1, {"match": Score(value="C")})
    results = builder.results(1, 1)
    assert results.headline is not None
    assert results.headline.to_dict() == {
        "scorer": "match",
        "score": "match",
        "metric": "accuracy",
        "reducer": "mode",
    }
    assert ResultsBuilder([]).results(3, 3).headline is None


def test_running_metrics_are_there_at_any_time() -> None:
    builder = ResultsBuilder([match(), includes()], epochs=2)
    assert builder.running() == []
    builder.add(1, 1, {"match": Score(value="C"), "includes": Score(value="I")})
    builder.add(1, 2, {"match": Score(value="I"), "includes": Score(value="I")})
    assert builder.running() == [
        ("match/accuracy", 0.5),
        ("match/stderr", 0.0),
        ("includes/accuracy", 0.0),
        ("includes/stderr", 0.0),
    ]


def test_scorers_are_declared_with_what_was_given_to_them() -> None:
    (declared,) = eval_scorers([answer("line")])
    assert declared.to_dict() == {
        "name": "answer",
        "options": {"pattern": "line"},
        "metrics": [{"name": "accuracy", "options": {}}, {"name": "stderr", "options": {}}],
        "metadata": {},
    }
    (with_keys,) = eval_scorers([made({"a": [grouped(accuracy(), "g")]})])
    inner = {"type": "metric", "name": "accuracy", "params": {}}
    assert with_keys.metrics == {"a": [{"name": "grouped", "options": {"metric": inner, "group_key": "g"}}]}


@pytest.mark.parametrize("slip", [match, lambda state, target: None])
def test_what_is_no_scorer_is_refused(slip: Any) -> None:
    with pytest.raises(UsageError, match="parentheses"):
        ResultsBuilder([slip])


def test_what_is_no_metric_is_refused_and_forgotten_parentheses_are_forgiven() -> None:
    with pytest.raises(UsageError, match="'accuracy' is no metric"):
        ResultsBuilder([made(["accuracy"])])
    assert values_of(build(made([accuracy]), [["C"]])[0]) == {"accuracy": 1.0}
