# ruff: noqa: RUF001  # characters that look like others are what some of these tests are about
from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Literal

import pytest

from proctor.contracts import UsageError
from proctor.dataset import Sample
from proctor.scorer import (
    AnswerPattern,
    Score,
    Scorer,
    answer,
    check_targets,
    choice,
    exact,
    f1,
    includes,
    match,
    model_graded_qa,
    pattern,
)

Judge = Callable[..., Score]


@pytest.mark.parametrize(
    ("completion", "target", "location", "correct"),
    [
        ("The capital is Paris.", "paris", "end", True),
        ("Paris is the capital", "paris", "end", False),
        ("Paris is the capital", "paris", "begin", True),
        ("It is Paris, surely", "Paris", "any", True),
        ('"Paris"', "Paris", "exact", True),
        ("It is Paris", "Paris", "exact", False),
        ("STRASSE", "straße", "end", True),
    ],
)
def test_match_looks_where_it_is_told_past_case_and_punctuation(
    judge: Judge, completion: str, target: str, location: str, correct: bool
) -> None:
    assert judge(match(location=location), completion, target).as_bool() is correct  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("completion", "target", "answer"),
    [
        ("The answer is $1,000", "1000", "1000"),
        ("The answer is \\$1,000.", "1000", "1000"),
        ("so **4.0**", "4", "4"),
        ("it is −4", "-4", "-4"),
        ("(5)", "5", "5"),
        ("half is ½", "0.5", "0.5"),
        ("10²", "100", "100"),
        ("1e3", "1000", "1000"),
        ("CHF 1'250.50", "1250.5", "1250.5"),
        ("四", "4", "4"),
        ("十二", "12", "12"),
    ],
)
def test_match_compares_numbers_however_they_are_written(
    judge: Judge, completion: str, target: str, answer: str
) -> None:
    score = judge(match(numeric=True), completion, target)
    assert (score.value, score.answer) == ("C", answer)


@pytest.mark.parametrize("completion", ["50%", "4km", "x4", "3/4", "\\boxed{4}", "1e400", "14"])
def test_what_is_no_number_of_its_own_does_not_match_one(judge: Judge, completion: str) -> None:
    assert judge(match(numeric=True), completion, "4").value == "I"


def test_numeric_takes_the_first_the_last_or_any_number(judge: Judge) -> None:
    for location, correct in [("begin", "7"), ("end", "4"), ("any", "9")]:
        assert judge(match(location=location, numeric=True), "7 then 9 then 4", correct).value == "C"  # type: ignore[arg-type]
    assert judge(match(location="exact", numeric=True), "1 000", "1000").value == "C"


def test_any_of_several_targets_will_do(judge: Judge) -> None:
    assert judge(includes(), "it is b", ["a1", "b"]).value == "C"


COMPARING = [
    includes(),
    match(),
    match("begin"),
    match("any"),
    match("exact"),
    match(numeric=True),
    exact(),
    f1(),
    pattern("(hello)|x", match_all=True),
    pattern("(x?)hello"),
    answer("word"),
]


@pytest.mark.parametrize("scorer", COMPARING)
@pytest.mark.parametrize("completion", ["hello world", "ANSWER: hello", ""])
@pytest.mark.parametrize("target", ["", " \n", [], ["", " "]])
def test_a_sample_without_a_target_is_not_scored(
    judge: Judge, scorer: Scorer, completion: str, target: str | list[str]
) -> None:
    score = judge(scorer, completion, target)
    assert math.isnan(score.as_float())
    assert score.reason == "no_target"
    assert score.explanation == "Sample 1 has no target to compare the answer with."


def test_a_blank_target_among_others_is_left_out(judge: Judge) -> None:
    assert judge(includes(), "it is c", ["", "a1", "b"]).value == "I"
    assert judge(pattern("(x?)hello", match_all=True), "hello", ["", "b"]).value == "I"


@pytest.mark.parametrize(("target", "numeric"), [("+", False), ("?", False), ("$", True), ("**", True), (".", True)])
@pytest.mark.parametrize("location", ["begin", "end", "any", "exact"])
def test_a_target_of_marks_alone_matches_those_marks_and_nothing_else(
    judge: Judge, target: str, numeric: bool, location: Literal["begin", "end", "any", "exact"]
) -> None:
    scorer = match(location, numeric=numeric)
    assert judge(scorer, "it is minus", target).value == "I"
    assert judge(scorer, f" {target} ", target).value == "C"


def test_targets_that_nobody_gave_are_refused_before_a_run() -> None:
    untold = [Sample(input="q"), Sample(input="r", target=" ")]
    for scorer in [*COMPARING, choice()]:
        with pytest.raises(UsageError, match=r"answers with targets, but no sample has one.*FieldSpec\(target="):
            check_targets([model_graded_qa(), scorer], untold)
        check_targets([scorer], [*untold, Sample(input="s", target="t")])
    check_targets([model_graded_qa()], untold)
    check_targets([choice()], [Sample(input="q", target=[])])
    check_targets([includes()], [])


def test_includes_can_mind_case(judge: Judge) -> None:
    assert judge(includes(), "Hello World", "world").value == "C"
    assert judge(includes(ignore_case=False), "Hello World", "world").value == "I"


def test_an_empty_answer_says_so(judge: Judge) -> None:
    for scorer in (match(), includes(), exact(), f1(), answer("line"), pattern("(x)")):
        assert judge(scorer, " ", "x").reason == "no_response"


def test_pattern_takes_one_group_or_all_or_the_whole(judge: Judge) -> None:
    assert judge(pattern(r"ANSWER: (\w+)"), "answer: YES", "yes").answer == "YES"
    assert judge(pattern(r"(\w) (\w)"), "a b", "b").answer == "b"
    assert judge(pattern(r"(\w) (\w)", match_all=True), "a b", ["a", "b"]).value == "C"
    assert judge(pattern(r"(\w) (\w)", match_all=True), "a b", "a").value == "I"
    assert judge(pattern("yes"), "yes!", "yes").value == "C"


def test_pattern_that_finds_nothing_is_a_fault_of_form(judge: Judge) -> None:
    score = judge(pattern(r"ANSWER: (\w+)"), "I do not know", "yes")
    assert (score.value, score.answer, score.reason) == ("I", None, "invalid_response_format")


@pytest.mark.parametrize(
    ("kind", "completion", "expected"),
    [
        ("letter", "ANSWER: A is right", "A"),
        ("letter", "ANSWER: A\nANSWER: B", "B"),
        ("letter", "ANSWER: AB", None),
        ("word", "ANSWER: Paris.\nBye", "Paris"),
        ("word", "ANSWER: two words", None),
        ("line", "so\nAnswer : Paris, France\n", "Paris, France"),
        ("line", "ANSWER: Paris\nBye", None),
    ],
)
def test_answer_reads_a_letter_a_word_or_a_line(judge: Judge, kind: str, completion: str, expected: str | None) -> None:
    assert judge(answer(kind), completion, "?").answer == expected  # type: ignore[arg-type]


def test_answer_patterns_are_ordinary_regular_expressions() -> None:
    found = re.search(AnswerPattern.LINE, "reasons\nANSWER: 42")
    assert found is not None and found.group(1) == "42"


def test_exact_and_f1_compare_normal_words(judge: Judge) -> None:
    assert judge(exact(), "The U.S.A.", "usa").value == "C"
    assert judge(exact(), "$5", "5.0").value == "C"
    assert judge(exact(), "a", "a").value == "I"  # nothing is left of an article
    assert judge(f1(), "the answer is 42", "42").value == 0.5
    assert judge(f1(), "cat dog", ["cat", "dog cat"]).value == 1.0
    assert judge(f1(stop_words=["Foo"]), "foo bar", "bar").value == 1.0
    assert judge(f1(answer_fn=lambda text: text.split(":")[1]), "answer: bar", "bar").value == 1.0
