from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import UsageError
from proctor.scorer import (
    Score,
    ScoreReducer,
    at_least,
    check_distinct,
    check_reducers,
    collect_score,
    create_reducers,
    majority_score,
    max_score,
    mean_score,
    median_score,
    mode_score,
    pass_at,
    pass_k,
    reducer_name,
    score_reducer,
)

NAN = math.nan


def reduced(reducer: ScoreReducer, *values: Any) -> Any:
    return reducer([Score(value=value) for value in values]).value


@pytest.mark.parametrize(
    ("reducer", "values", "expected"),
    [
        (mean_score(), ["C", "I", "C", "P"], 0.625),
        (median_score(), [0.2, 0.9, 0.4], 0.4),
        (mode_score(), ["I", "C", "C"], "C"),
        (mode_score(), ["I", "C"], "I"),
        (max_score(), ["I", "P"], "P"),
        (at_least(2), ["C", "C", "I"], 1),
        (at_least(2), ["C", "P", "I"], 0),
        (at_least(2, 0.5), ["C", "P", "I"], 1),
        (pass_at(2), ["C", "I", "I"], 2 / 3),
        (pass_k(2), ["C", "C", "I"], 1 / 3),
        (majority_score(), ["C", "I", "C"], "C"),
        (collect_score(), ["C", NAN, "I"], ["C", "I"]),
    ],
)
def test_reducers_do_what_their_names_say(reducer: ScoreReducer, values: list[Any], expected: Any) -> None:
    assert reduced(reducer, *values) == pytest.approx(expected)


ALL = [mean_score(), median_score(), mode_score(), max_score(), at_least(1), pass_at(1), pass_k(1), majority_score()]


@pytest.mark.parametrize("reducer", ALL, ids=reducer_name)
def test_no_scores_and_only_unscored_ones_give_no_score(reducer: ScoreReducer) -> None:
    assert math.isnan(reduced(reducer))
    assert math.isnan(reduced(reducer, NAN, NAN))
    assert math.isnan(reduced(reducer, {"a": NAN})["a"])


@pytest.mark.parametrize("reducer", [pass_at(3), pass_k(3), at_least(3)], ids=reducer_name)
def test_fewer_epochs_than_k_give_no_score(reducer: ScoreReducer) -> None:
    assert math.isnan(reduced(reducer, 1, 1))
    assert math.isnan(reduced(reducer, 1, 1, NAN))


def test_failed_votes_count_against_a_majority() -> None:
    assert math.isnan(reduced(majority_score(), "C", NAN, NAN))
    panel = majority_score()([Score(value="C"), Score.unscored("grader_failed")]).metadata
    assert panel == {
        "panel": {
            "votes": ["C", None],
            "size": 2,
            "failures": [{"index": 1, "reason": "grader_failed", "explanation": None}],
        }
    }


def test_unscored_epochs_do_not_count() -> None:
    assert reduced(mean_score(), NAN, 1, 0) == 0.5


def test_dicts_are_reduced_key_by_key_and_lists_item_by_item() -> None:
    assert reduced(mean_score(), {"a": 1, "b": "C"}, {"a": 0, "b": None}) == {"a": 0.5, "b": 0.5}
    assert reduced(mean_score(), {"a": 1}, {"a": 0, "b": 1}) == {"a": 0.5, "b": 1.0}
    assert reduced(max_score(), [1, 0], [0, 0]) == [1, 0]
    with pytest.raises(ValueError, match="different lengths"):
        reduced(mean_score(), [1], [1, 2])
    with pytest.raises(ValueError, match="did not"):
        reduced(mean_score(), {"a": 1}, 1)


def test_what_all_epochs_agree_on_stays_and_metadata_are_the_first_ones() -> None:
    first = Score(value=1, answer="x", explanation="e1", reason="r", metadata={"n": 1})
    second = Score(value=0, answer="x", explanation="e2", reason="r", metadata={"n": 2})
    joined = mean_score()([first, second])
    assert (joined.answer, joined.explanation, joined.reason, joined.metadata) == ("x", None, "r", {"n": 1})


@given(st.lists(st.sampled_from([0, 1, 0.5, "C", "I", NAN]), min_size=1, max_size=5))
def test_the_order_of_epochs_does_not_matter(values: list[Any]) -> None:
    for reducer in (mean_score(), median_score(), at_least(2), pass_at(2), pass_k(2)):
        results = [reduced(reducer, *order) for order in itertools.permutations(values)]
        assert all(
            result == pytest.approx(results[0], abs=1e-12) or (math.isnan(result) and math.isnan(results[0]))
            for result in results
        )


@given(st.integers(1, 8), st.integers(0, 8), st.integers(1, 8))
def test_pass_at_and_pass_k_are_shares_of_all_draws(n: int, c: int, k: int) -> None:
    outcomes = [1] * min(c, n) + [0] * max(0, n - c)
    if k > n:
        return
    draws = list(itertools.combinations(outcomes, k))
    assert reduced(pass_at(k), *outcomes) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert reduced(pass_k(k), *outcomes) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_reducers_are_made_from_names() -> None:
    names = ["mean", "median", "mode", "max", "majority", "collect", "at_least_2", "pass_at_5", "pass_k_3"]
    assert [reducer_name(reducer) for reducer in create_reducers(names)] == names
    assert [reducer_name(reducer) for reducer in create_reducers("max")] == ["max"]
    assert [reducer_name(reducer) for reducer in create_reducers([mean_score, pass_at(2)])] == ["mean", "pass_at_2"]


def test_own_reducers_have_names_too() -> None:
    @score_reducer(name="lowest")
    def lowest_score() -> ScoreReducer:
        return lambda scores: min(scores, key=lambda score: score.as_float())

    (made,) = create_reducers("lowest")
    assert reducer_name(made) == "lowest"
    assert reduced(made, 3, 1, 2) == 1


@pytest.mark.parametrize(("name", "says"), [("maen", "mean"), ("pass_at", "pass_at_2"), ("nothing", "at_least_K")])
def test_an_unknown_reducer_is_refused(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        create_reducers(name)


def test_too_few_epochs_are_refused_before_a_run() -> None:
    check_reducers(create_reducers(["mean", "pass_at_2"]), 2)
    with pytest.raises(UsageError, match="--epochs 3"):
        check_reducers(create_reducers("at_least_3"), 2)
    with pytest.raises(UsageError, match="at least 1"):
        pass_at(0)


def test_a_reducer_is_given_once() -> None:
    check_distinct(create_reducers(["mean", "pass_at_2", "pass_at_3"]))
    with pytest.raises(UsageError, match="the reducer pass_at_2 was given twice: name it once"):
        check_distinct(create_reducers(["pass_at_2", "mean", "pass_at_2"]))
