"""Numbers, times and counts are written so that a person reads them at a glance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.display._pace import Pace
from proctor.display._text import counts, duration, number, plural, shorten, tokens


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (754, "12:34"), (3723, "1:02:03"), (-1, "0:00"), (59.6, "1:00")]
)
def test_a_duration_grows_from_seconds_to_hours(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0"), (950, "950"), (12_345, "12.3k"), (4_560_000, "4.56M")])
def test_tokens_are_rounded_to_what_matters(count: int, text: str) -> None:
    assert tokens(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.31, "0.310"),
        (0, "0.000"),
        (1234.0, "1,234"),
        (0.00001234, "1.23e-05"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (-0.5, "-0.500"),
    ],
)
def test_a_metric_has_three_decimals_or_as_many_digits_as_it_needs(value: float, text: str) -> None:
    assert number(value) == text


def test_counts_name_the_most_frequent_kinds_first_and_sum_up_the_rest() -> None:
    assert counts({"A": 1, "B": 3, "C": 0}) == "B 3, A 1"
    assert counts(dict.fromkeys("ABCDEF", 1), most=2) == "A 1, B 1, 4 other kinds"


def test_one_is_not_many() -> None:
    assert plural(1, "error") == "1 error"
    assert plural(2000, "error") == "2,000 errors"
    assert (plural(1, "retry"), plural(3, "retry")) == ("1 retry", "3 retries")
    assert counts(dict.fromkeys("ABC", 1), most=2).endswith("1 other kind")


@given(st.text(), st.integers(0, 40))
def test_shortened_text_fits(text: str, width: int) -> None:
    short = shorten(text, width)
    assert len(short) <= max(width, 0)
    assert short == text or len(text) > width


def test_shortened_text_keeps_both_ends() -> None:
    assert shorten("openai/gpt-5-mini-2026-preview", 12) == "ope…-preview"


def test_pace_is_unknown_until_something_finished() -> None:
    pace = Pace()
    pace.note(0, 0)
    assert pace.rate == 0
    assert pace.left(0, 10) is None


def test_pace_follows_the_last_minute_not_the_whole_run() -> None:
    pace = Pace()
    for second in range(101):
        pace.note(second, second * 10)
    for second in range(101, 200):
        pace.note(second, 1000 + (second - 100))
    assert pace.rate == pytest.approx(1.0, rel=0.01)
    assert pace.left(1099, 1199) == pytest.approx(100, rel=0.01)


def test_a_dataset_of_unknown_length_has_no_time_left() -> None:
    pace = Pace()
    pace.note(0, 0)
    pace.note(10, 10)
    assert pace.left(10, None) is None


@given(st.lists(st.tuples(st.floats(0, 0.5), st.integers(0, 5)), max_size=400))
def test_pace_keeps_few_points_however_often_it_is_told(steps: list[tuple[float, int]]) -> None:
    pace = Pace()
    elapsed, done = 0.0, 0
    for wait, finished in steps:
        elapsed += wait
        done += finished
        pace.note(elapsed, done)
    assert pace.rate >= 0
    assert len(pace._points) <= 123
