from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from proctor.contracts import UsageError
from proctor.scorer import Score, choice

Judge = Callable[..., Score]
FOUR = ["w", "x", "y", "z"]


@pytest.mark.parametrize("target", [["A", "C"], "AC", "A,C", "A, C", ["c", "a"]])
def test_all_right_choices_and_no_other_are_correct(judge: Judge, target: str | list[str]) -> None:
    assert judge(choice(), "?", target, choices=FOUR, chosen=[0, 2]).value == "C"
    assert judge(choice(), "?", target, choices=FOUR, chosen=[0]).value == "I"
    assert judge(choice(), "?", target, choices=FOUR, chosen=[0, 1, 2]).value == "I"


@pytest.mark.parametrize("seed", range(8))
def test_letters_mean_the_original_order_however_choices_were_shuffled(
    judge: Judge, state_of: Callable[..., object], seed: int
) -> None:
    for shown in range(4):
        score = judge(choice(), "ANSWER", "B", choices=FOUR, shuffle=seed, chosen=[shown])
        assert (score.value == "C") == (score.answer == "B")
        assert score.explanation is not None and score.explanation.startswith("ANSWER")


def test_no_choice_is_a_fault_of_form(judge: Judge) -> None:
    score = judge(choice(), "dunno", "A", choices=FOUR)
    assert (score.value, score.answer, score.reason) == ("I", "", "invalid_response_format")


def test_an_empty_list_says_that_no_choice_is_right_and_an_empty_text_is_no_target(judge: Judge) -> None:
    assert judge(choice(), "ANSWER: none", [], choices=FOUR).value == "C"
    assert judge(choice(), "ANSWER: A", [], choices=FOUR, chosen=[0]).value == "I"
    for target in ("", [""], " "):
        score = judge(choice(), "ANSWER: A", target, choices=FOUR, chosen=[0])
        assert (math.isnan(score.as_float()), score.reason) == (True, "no_target")


def test_more_than_26_choices_are_named_by_numbers(judge: Judge) -> None:
    many = [str(number) for number in range(40)]
    assert judge(choice(), "?", "12", choices=many, chosen=[37]).value == "C"


@pytest.mark.parametrize("target", ["E", "1", "hello"])
def test_a_target_that_names_no_choice_is_an_error(judge: Judge, target: str) -> None:
    with pytest.raises(UsageError, match="A to D"):
        judge(choice(), "?", target, choices=FOUR, chosen=[0])


def test_a_sample_without_choices_is_an_error(judge: Judge) -> None:
    with pytest.raises(UsageError, match="has no choices"):
        judge(choice(), "?", "A")
