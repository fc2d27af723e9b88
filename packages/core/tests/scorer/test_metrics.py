from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import UsageError
from proctor.scorer import (
    Accumulator,
    AccumulatorMetric,
    Metric,
    SampleScore,
    Score,
    Value,
    accuracy,
    bootstrap_stderr,
    grouped,
    mean,
    metric,
    std,
    stderr,
    value_to_float,
    var,
)

numbers = st.lists(st.floats(-1e6, 1e6, allow_nan=False), max_size=30)


def scores(values: Sequence[Any], groups: Sequence[Any] = ()) -> list[SampleScore]:
    return [
        SampleScore(Score(value=value), sample_id=index, sample_metadata={"g": groups[index]} if groups else None)
        for index, value in enumerate(values)
    ]


def close(result: object, expected: float) -> bool:
    assert isinstance(result, float)
    return math.isclose(result, expected, rel_tol=1e-9, abs_tol=1e-9)


@given(numbers)
def test_accumulators_give_what_the_formulas_give(values: list[float]) -> None:
    many = len(values) > 1
    spread = statistics.stdev(values) if many else 0.0
    assert close(mean()(scores(values)), statistics.fmean(values) if values else 0.0)
    assert close(accuracy()(scores(values)), statistics.fmean(values) if values else 0.0)
    assert close(std()(scores(values)), spread)
    assert close(var()(scores(values)), spread**2)
    assert close(stderr()(scores(values)), spread / math.sqrt(len(values)) if many else 0.0)


@given(st.lists(st.tuples(st.floats(-100, 100), st.sampled_from("abc")), min_size=1, max_size=30))
def test_the_clustered_error_is_that_of_the_sums_of_clusters(rows: list[tuple[float, str]]) -> None:
    values = [value for value, _ in rows]
    centre = statistics.fmean(values)
    sums = {key: math.fsum(value - centre for value, of in rows if of == key) for key in {of for _, of in rows}}
    number = len(sums)
    expected = 0.0
    if number > 1:
        expected = math.sqrt(sum(one**2 for one in sums.values()) * number / (number - 1)) / len(rows)
    assert close(stderr(cluster="g")(scores(values, [of for _, of in rows])), expected)


METRICS = [
    accuracy(),
    mean(),
    std(),
    var(),
    stderr(),
    stderr(cluster="g"),
    bootstrap_stderr(num_samples=20),
    grouped(mean(), "g"),
    grouped(mean(), "g", all="groups"),
]


def accumulated(one: Metric, rows: list[SampleScore]) -> Accumulator:
    assert isinstance(one, AccumulatorMetric)
    accumulator = one.accumulator()
    for row in rows:
        accumulator.add(row)
    return accumulator


def same(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    assert isinstance(a, (int, float)) and isinstance(b, (int, float))
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize("one", METRICS, ids=lambda one: type(one.accumulator()).__name__)
@given(
    st.lists(st.lists(st.tuples(st.floats(-100, 100), st.sampled_from("abc")), max_size=8), min_size=3, max_size=3),
    st.randoms(use_true_random=False),
)
def test_merging_is_associative_and_order_does_not_matter(
    one: Metric, parts: list[list[tuple[float, str]]], rand: Any
) -> None:
    first, second, third = ([(value, key) for value, key in part] for part in parts)
    everything = first + second + third

    def acc(rows: list[tuple[float, str]]) -> Accumulator:
        return accumulated(one, scores([value for value, _ in rows], [key for _, key in rows]))

    left = acc(first)
    left.merge(acc(second))
    left.merge(acc(third))
    tail = acc(second)
    tail.merge(acc(third))
    right = acc(first)
    right.merge(tail)
    shuffled = list(everything)
    rand.shuffle(shuffled)
    at_once = acc(everything).result()
    assert same(left.result(), at_once)
    assert same(right.result(), at_once)
    assert same(acc(shuffled).result(), at_once)


def test_large_numbers_lose_no_digits() -> None:
    values = [1e16, 1.0, -1e16, 1.0] * 3
    assert mean()(scores(values)) == 0.5
    assert close(var()(scores([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16])), 30.0)


@pytest.mark.parametrize("special", [math.inf, -math.inf])
def test_infinite_scores_are_shown_as_they_add_up(special: float) -> None:
    assert mean()(scores([special, 1.0])) == special
    assert math.isnan(mean()(scores([math.inf, -math.inf])))  # type: ignore[arg-type]
    assert math.isnan(std()(scores([special, 1.0])))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [50, 3000])
def test_the_bootstrap_agrees_with_theory_and_with_itself(size: int) -> None:
    values = [float(index % 3 == 0) for index in range(size)]
    theory = statistics.pstdev(values) / math.sqrt(size)
    result = bootstrap_stderr()(scores(values))
    assert isinstance(result, float)
    assert result == pytest.approx(theory, rel=0.15)
    assert bootstrap_stderr()(scores(values[::-1])) == result
    assert bootstrap_stderr(seed=1)(scores(values)) != result


def test_grouped_gives_one_value_a_group_and_one_for_all() -> None:
    rows = scores(["C", "I", "C", "C"], ["a", "b", "a", "b"])
    assert grouped(accuracy(), "g")(rows) == {"a": 1.0, "b": 0.5, "all": 0.75}
    assert grouped(accuracy(), "g", all=False)(rows) == {"a": 1.0, "b": 0.5}
    assert grouped(accuracy(), "g", all="groups", all_label="each")(rows) == {"a": 1.0, "b": 0.5, "each": 0.75}
    assert grouped(accuracy(), "g", name_template="in {group_name}", all=False)(rows) == {"in a": 1.0, "in b": 0.5}


def test_a_missing_metadata_field_is_named() -> None:
    with pytest.raises(ValueError, match=r"'h'.*fields: 'g'"):
        grouped(accuracy(), "h")(scores([1], ["a"]))


def test_a_metric_of_a_group_may_be_a_function_of_the_list() -> None:
    @metric
    def number() -> Metric:
        return lambda scores: float(len(scores))

    assert grouped(number(), "g")(scores([1, 2, 3], "aab")) == {"a": 2.0, "b": 1.0, "all": 3.0}


def test_an_author_can_write_an_accumulator() -> None:
    class Largest(Accumulator):
        def __init__(self) -> None:
            self.largest = -math.inf

        def add(self, score: SampleScore) -> None:
            self.largest = max(self.largest, score.as_float())

        def merge(self, other: Self) -> None:
            self.largest = max(self.largest, other.largest)

        def result(self) -> float:
            return self.largest

    assert AccumulatorMetric(Largest)(scores([1, 3, 2])) == 3.0


@pytest.mark.parametrize(
    ("value", "number"),
    [("C", 1), ("I", 0), ("P", 0.5), ("N", 0), ("yes", 1), ("No", 0), (" 2 ", 2), ("0.5", 0.5), (True, 1), (3, 3)],
)
def test_values_become_numbers(value: Any, number: float) -> None:
    assert value_to_float()(value) == number


@pytest.mark.parametrize("make", [mean, accuracy, std, var, stderr, bootstrap_stderr])
@pytest.mark.parametrize("value", [{"a": 1}, [1]])
def test_dicts_and_lists_have_no_mean(make: Callable[[], Metric], value: Value) -> None:
    with pytest.raises(UsageError, match=r"^scores that are a (dict|list), such as .*, are no numbers: for a dict"):
        make()([SampleScore(Score(value=value)), SampleScore(Score(value=value))])


def test_what_is_no_number_is_0_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    convert = value_to_float(correct="right", incorrect="wrong")
    assert convert("right") == 1
    assert [convert("a value seen only here"), convert("a value seen only here")] == [0, 0]
    assert caplog.text.count("a value seen only here") == 1


def test_a_sample_score_shows_its_score() -> None:
    row = SampleScore(Score(value="P", answer="x"), sample_id=1)
    assert (row.value, row.answer, row.as_float()) == ("P", "x", 0.5)
    with pytest.raises(AttributeError):
        _ = row.nothing
