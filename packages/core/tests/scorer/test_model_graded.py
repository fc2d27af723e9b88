from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from proctor.contracts import UsageError
from proctor.model import Model, get_model, use_models
from proctor.scorer import Score, Scorer, Target, model_graded_fact, model_graded_qa, multi_scorer, pattern
from proctor.solver import TaskState

pytestmark = pytest.mark.anyio


def grader(*replies: str) -> Model:
    return get_model("mock/grader", memoize=False, custom_outputs=list(replies))


async def graded(reply: str, state: TaskState, **options: Any) -> Score:
    score = await model_graded_qa(model=grader(reply), **options)(state, Target("the criterion"))
    assert score is not None
    return score


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ("reasons\nGRADE: C", "C"),
        ("grade : i", "I"),
        ("**GRADE: C**", "C"),
        ("GRADE: CORRECT", "C"),
        ("GRADE: I, no, GRADE: C", "C"),
    ],
)
async def test_the_last_grade_of_the_reply_counts(state_of: Callable[..., TaskState], reply: str, grade: str) -> None:
    score = await graded(reply, state_of("it is so"))
    assert (score.value, score.answer, score.explanation) == (grade, "it is so", reply)


@pytest.mark.parametrize(
    "reply", ["", "I can't say", "GRADE: X", "GRADE: Cx", "UPGRADE: C", "GRADE: P", "GRADE: C\nGRADE: none"]
)
async def test_a_reply_without_a_grade_is_no_score(state_of: Callable[..., TaskState], reply: str) -> None:
    score = await graded(reply, state_of("it is so"))
    assert isinstance(score.value, float) and math.isnan(score.value)
    assert score.reason == "grader_failed"


async def test_partial_credit_admits_p(state_of: Callable[..., TaskState]) -> None:
    assert (await graded("GRADE: P", state_of("x"), partial_credit=True)).as_float() == 0.5


async def test_the_grader_sees_question_answer_criterion_and_metadata(state_of: Callable[..., TaskState]) -> None:
    template = "{question}|{answer}|{criterion}|{topic}|{instructions}"
    state = state_of("so {it} is", metadata={"topic": "law"})
    score = await graded("GRADE: C", state, template=template, instructions="Grade!")
    assert score.metadata is not None
    asked = score.metadata["grading"][0]
    assert (asked["role"], asked["content"]) == ("user", "What is it?|so {it} is|the criterion|law|Grade!")
    assert score.metadata["grading"][1]["role"] == "assistant"


async def test_a_template_with_an_unknown_name_is_an_error(state_of: Callable[..., TaskState]) -> None:
    with pytest.raises(UsageError, match="nope"):
        await graded("GRADE: C", state_of("x"), template="{answer} {nope}")


async def test_an_own_pattern_gives_an_own_grade(state_of: Callable[..., TaskState]) -> None:
    assert (await graded("SCORE: 7", state_of("x"), grade_pattern=r"SCORE: (\d+)")).value == "7"


@pytest.mark.parametrize(
    ("replies", "value"),
    [
        (["GRADE: C", "GRADE: I", "GRADE: C"], "C"),
        (["GRADE: C", "GRADE: I"], None),
        (["GRADE: C", "what?", "GRADE: I"], None),
        (["what?", "GRADE: C", "what?"], None),
    ],
)
async def test_several_graders_need_a_majority_of_all(
    state_of: Callable[..., TaskState], replies: list[str], value: str | None
) -> None:
    score = await model_graded_qa(model=[grader(reply) for reply in replies])(state_of("x"), Target("y"))
    assert score is not None and score.metadata is not None
    assert score.value == value or (value is None and isinstance(score.value, float) and math.isnan(score.value))
    assert score.metadata["panel"]["size"] == len(replies)


async def test_the_model_in_the_role_grades_else_the_one_under_evaluation(state_of: Callable[..., TaskState]) -> None:
    evaluated, judge = grader("GRADE: I", "GRADE: I"), grader("GRADE: C")
    with use_models(evaluated, {"grader": judge}):
        by_role = await model_graded_fact()(state_of("x"), Target("y"))
    with use_models(evaluated, {}):
        by_itself = await model_graded_fact()(state_of("x"), Target("y"))
    assert by_role is not None and by_itself is not None
    assert (by_role.value, by_itself.value) == ("C", "I")


async def test_history_is_shown_on_request(state_of: Callable[..., TaskState]) -> None:
    score = await graded(
        "GRADE: C", state_of("x"), template="{question}", include_history=lambda state: f"all of {state.sample_id}"
    )
    assert score.metadata is not None and score.metadata["grading"][0]["content"] == "all of 1"


async def test_scorers_are_joined_by_a_reducer(state_of: Callable[..., TaskState]) -> None:
    three = [pattern("(x)"), pattern("(y)"), pattern("(x|y)")]
    score = await multi_scorer(three, "mean")(state_of("x"), Target("x"))
    assert score is not None and score.value == pytest.approx(2 / 3)


async def test_an_error_of_a_joined_scorer_is_raised_as_it_is(state_of: Callable[..., TaskState]) -> None:
    def failing(*_: Any) -> str:
        raise LookupError("out of order")

    model = get_model("mock/grader", memoize=False, custom_outputs=failing)
    with pytest.raises(LookupError, match="out of order"):
        await multi_scorer([pattern("(x)"), model_graded_qa(model=model)], "mean")(state_of("x"), Target("x"))


@pytest.mark.parametrize("make", [model_graded_qa, model_graded_fact])
async def test_a_template_that_does_not_show_the_answer_is_warned_of(make: Callable[..., Scorer]) -> None:
    with pytest.warns(UserWarning, match=r"does not show the grader the answer: its template has no \{answer\}"):
        make(template="{question} {criterion}")
