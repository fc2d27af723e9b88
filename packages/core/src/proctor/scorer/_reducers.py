"""One score out of those of a sample's epochs."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from proctor.contracts import UsageError
from proctor.registry import create, is_factory, is_registered, registry_info
from proctor.schema import Score, Value
from proctor.scorer._decorators import score_reducer
from proctor.scorer._types import ScoreReducer, ValueToFloat
from proctor.scorer._value import to_float as default_to_float

# From the values that are not NaN, and how many scores there were with them, to one value.
Reduce: TypeAlias = Callable[[list[Any], int], Any]

_OF_NUMBERS = {"mean", "median", "max", "at_least", "pass_at", "pass_k"}
_NAMED = re.compile(r"(at_least|pass_at|pass_k)_(\d+)")


def is_nan(value: Any) -> bool:
    """Whether ``value`` says that there is no score."""
    return isinstance(value, float) and value != value


def reduce_scores(scores: list[Score], reduce: Reduce) -> Score:
    """Reduce values that are numbers or text, lists (item by item) or dicts (key by key); NaN counts as no score.

    Answer, explanation and reason stay where all scores agree; the metadata are the first score's.
    """
    if not scores:
        return Score(value=math.nan)
    first = scores[0]
    return Score(
        value=_reduce_values([score.value for score in scores], reduce),
        answer=first.answer if all(score.answer == first.answer for score in scores) else None,
        explanation=first.explanation if all(score.explanation == first.explanation for score in scores) else None,
        reason=first.reason if all(score.reason == first.reason for score in scores) else None,
        metadata=first.metadata,
    )


def _reduce_values(values: list[Value], reduce: Reduce) -> Any:
    present = [value for value in values if not is_nan(value)]
    if not present:
        return math.nan
    if isinstance(present[0], dict):
        dicts = [value for value in present if isinstance(value, dict)]
        if len(dicts) < len(present):
            raise ValueError("some epochs of a sample gave a dict as score and others did not: they can't be reduced")
        keys = dict.fromkeys(key for value in dicts for key in value)
        return {key: _reduce_part([value.get(key, math.nan) for value in dicts], len(values), reduce) for key in keys}
    if isinstance(present[0], list):
        lists = [value for value in present if isinstance(value, list)]
        if len({len(value) for value in lists}) > 1 or len(lists) < len(present):
            raise ValueError("the epochs of a sample gave lists of different lengths as score: they can't be reduced")
        return [_reduce_part(list(items), len(values), reduce) for items in zip(*lists, strict=True)]
    return reduce(present, len(values))


def _reduce_part(values: list[Any], total: int, reduce: Reduce) -> Any:
    present = [value for value in values if not is_nan(value)]
    return reduce(present, total) if present else math.nan


@score_reducer(name="mean")
def mean_score(value_to_float: ValueToFloat = default_to_float) -> ScoreReducer:
    """The mean of the epochs' scores."""

    def average(values: list[Any], total: int) -> float:
        return _sum(map(value_to_float, values)) / len(values)

    return lambda scores: reduce_scores(scores, average)


def _sum(numbers: Any) -> float:
    listed = list(numbers)
    return math.fsum(listed) if all(map(math.isfinite, listed)) else sum(listed)


@score_reducer(name="median")
def median_score(value_to_float: ValueToFloat = default_to_float) -> ScoreReducer:
    """The median of the epochs' scores."""

    def middle(values: list[Any], total: int) -> float:
        return statistics.median(map(value_to_float, values))

    return lambda scores: reduce_scores(scores, middle)


@score_reducer(name="mode")
def mode_score() -> ScoreReducer:
    """The most frequent of the epochs' scores, as it is; of equally frequent ones, that of the earliest epoch."""

    def most_frequent(values: list[Any], total: int) -> Any:
        return Counter(values).most_common(1)[0][0]

    return lambda scores: reduce_scores(scores, most_frequent)


@score_reducer(name="max")
def max_score(value_to_float: ValueToFloat = default_to_float) -> ScoreReducer:
    """The highest of the epochs' scores, as it is."""

    def highest(values: list[Any], total: int) -> Any:
        return max(values, key=value_to_float)

    return lambda scores: reduce_scores(scores, highest)


@score_reducer
def at_least(k: int, value: float = 1.0, value_to_float: ValueToFloat = default_to_float) -> ScoreReducer:
    """1 if at least ``k`` epochs scored ``value`` or more, else 0; no score (NaN) with fewer than ``k`` epochs."""
    _check_k("at_least", k)

    def reach(values: list[Any], total: int) -> float:
        return math.nan if len(values) < k else int(_successes(values, value, value_to_float) >= k)

    return lambda scores: reduce_scores(scores, reach)


@score_reducer
def pass_at(k: int, value: float = 1.0, value_to_float: ValueToFloat = default_to_float) -> ScoreReducer:
    """The chance that at least one of ``k`` epochs drawn from those there are scored ``value`` or more.

    The unbiased estimator of Chen et al. 2021 ("Evaluating Large Language Models Trained on Code"):
    1 - C(n - c, k) / C(n, k) for n epochs of which c succeeded; no score (NaN) with fewer than ``k`` epochs.
    """
    _check_k("pass_at", k)

    def chance(values: list[Any], total: int) -> float:
        n, c = len(values), _successes(values, value, value_to_float)
        return math.nan if n < k else 1.0 - math.comb(n - c, k) / math.comb(n, k)

    return lambda scores: reduce_scores(scores, chance)


@score_reducer
def pass_k(k: int, value: float = 1.0, value_to_float: ValueToFloat = default_to_float) -> ScoreReducer:
    """The chance that all of ``k`` epochs drawn from those there are scored ``value`` or more: C(c, k) / C(n, k).

    From Yao et al. 2024 ("tau-bench"), there pass^k; no score (NaN) with fewer than ``k`` epochs.
    """
    _check_k("pass_k", k)

    def chance(values: list[Any], total: int) -> float:
        n, c = len(values), _successes(values, value, value_to_float)
        return math.nan if n < k else math.comb(c, k) / math.comb(n, k)

    return lambda scores: reduce_scores(scores, chance)


def _check_k(name: str, k: int) -> None:
    if k < 1:
        raise UsageError(f"the k of {name}(k) must be at least 1, not {k}")


def _successes(values: list[Any], threshold: float, to_float: ValueToFloat) -> int:
    return sum(to_float(value) >= threshold for value in values)


@score_reducer(name="majority")
def majority_score() -> ScoreReducer:
    """What more than half of the scores say (failed ones count as votes for nothing), else no score (NaN).

    The votes stand in the metadata under ``panel``: ``votes`` (``None`` for a failed one), ``size`` and ``failures``.
    """

    def more_than_half(values: list[Any], total: int) -> Any:
        value, votes = Counter(values).most_common(1)[0]
        return value if 2 * votes > total else math.nan

    def reduce(scores: list[Score]) -> Score:
        reduced = reduce_scores(scores, more_than_half)
        failures = [
            {"index": index, "reason": score.reason, "explanation": score.explanation}
            for index, score in enumerate(scores)
            if is_nan(score.value)
        ]
        votes = [None if is_nan(score.value) else score.value for score in scores]
        panel = {"votes": votes, "size": len(scores), "failures": failures}
        reduced.metadata = {**(reduced.metadata or {}), "panel": panel}
        return reduced

    return reduce


@score_reducer(name="collect")
def collect_score() -> ScoreReducer:
    """All scores in a list, in the order of the epochs."""

    def reduce(scores: list[Score]) -> Score:
        for score in scores:
            if isinstance(score.value, (list, dict)):
                raise ValueError(f"the reducer collect takes single values, not a {type(score.value).__name__}")
        present = [score.value for score in scores if not is_nan(score.value)]
        reduced = reduce_scores(scores, lambda values, total: values[0])
        reduced.value = present or math.nan  # type: ignore[assignment]  # single values, as checked above
        return reduced

    return reduce


def reducer_name(reducer: ScoreReducer) -> str:
    """The name of a reducer in a log: ``mean``, ``pass_at_2``, ..."""
    if not is_registered(reducer, "reducer"):
        return str(getattr(reducer, "__name__", None) or type(reducer).__name__)
    info = registry_info(reducer)
    name = info.name.rpartition("/")[2]
    return f"{name}_{info.params['k']}" if isinstance(info.params.get("k"), int) else name


def makes_numbers(reducer: ScoreReducer) -> bool:
    """Whether ``reducer`` looks at nothing but the numbers that the default conversion makes of scores."""
    if not is_registered(reducer, "reducer"):
        return False
    info = registry_info(reducer)
    return info.name.rpartition("/")[2] in _OF_NUMBERS and "value_to_float" not in info.params_passed


def create_reducers(reducers: str | ScoreReducer | Sequence[str | ScoreReducer]) -> list[ScoreReducer]:
    """Reducers by name (``mean``, ``at_least_2``, ``pass_at_5``, an own one's) or as they are.

    Raises:
        UsageError: for an unknown name.
    """
    wanted = [reducers] if isinstance(reducers, str) or callable(reducers) else list(reducers)
    return [_create(one.strip()) if isinstance(one, str) else _made(one) for one in wanted]


def _made(reducer: ScoreReducer) -> ScoreReducer:
    # `reducer=mean_score` without parentheses is a slip that would fail only after the last sample.
    made: Any = reducer
    return made() if is_factory(reducer) else reducer


def _create(name: str) -> ScoreReducer:
    try:
        if named := _NAMED.fullmatch(name):
            made: ScoreReducer = create("reducer", named[1], k=int(named[2]))
        else:
            made = create("reducer", name)
    except LookupError as error:
        raise UsageError(
            f"{error} For k of several epochs: at_least_K, pass_at_K, pass_k_K (such as pass_at_2)."
        ) from None
    except TypeError:
        raise UsageError(f"the reducer {name!r} needs a number of epochs: {name}_2, for example") from None
    return made


def check_distinct(reducers: Sequence[ScoreReducer]) -> None:
    """Check that no reducer is given twice: all its metrics would be, too.

    Raises:
        UsageError: if one is.
    """
    for place, reducer in enumerate(reducers):
        if any(_same(reducer, other) for other in reducers[:place]):
            raise UsageError(f"the reducer {reducer_name(reducer)} was given twice: name it once")


def _same(one: ScoreReducer, other: ScoreReducer) -> bool:
    if not (is_registered(one, "reducer") and is_registered(other, "reducer")):
        return one is other
    first, second = registry_info(one), registry_info(other)
    return (first.name, first.params) == (second.name, second.params)


def check_reducers(reducers: Sequence[ScoreReducer], epochs: int) -> None:
    """Check that there are enough epochs for each reducer.

    Raises:
        UsageError: if one needs more than ``epochs``.
    """
    for reducer in reducers:
        if is_registered(reducer, "reducer"):
            k = registry_info(reducer).params.get("k")
            if isinstance(k, int) and k > epochs:
                raise UsageError(
                    f"the reducer {reducer_name(reducer)} needs at least {k} epochs, but there are {epochs}: "
                    f"use --epochs {k}, or another reducer"
                )
