"""Multiple-choice questions."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import a_state, turns

from proctor.schema import ModelOutput
from proctor.solver import Generate, TaskState, ToolCalls, multiple_choice, parse_answers

# Texts, and the letters that Inspect AI 0.3.285 reads in them when one answer, and when several, are right.
ANSWERS: list[tuple[str, str, str]] = [
    tuple(row) for row in json.loads(Path(__file__).with_name("answers.json").read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("text", "single", "several"), ANSWERS)
def test_answers_are_read_as_elsewhere_in_the_field(text: str, single: str, several: str) -> None:
    assert "".join("ABCD"[index] for index in sorted(parse_answers(text, 4, False))) == single
    assert "".join("ABCD"[index] for index in sorted(parse_answers(text, 4, True))) == several


@given(st.text(), st.integers(0, 40), st.booleans())
def test_any_text_can_be_read(text: str, choices: int, several: bool) -> None:
    found = parse_answers(text, choices, several)
    assert all(0 <= index < choices for index in found)
    assert several or len(found) <= 1


@given(st.sets(st.integers(0, 25), min_size=1), st.sampled_from([", ", ",", " ", "", " and "]))
def test_any_selection_of_letters_is_read_however_it_is_written(chosen: set[int], separator: str) -> None:
    letters = separator.join(chr(ord("A") + index) for index in sorted(chosen))
    assert parse_answers(f"I think so.\n\nANSWER: {letters}.", 26, True) == chosen


def test_beyond_z_choices_have_numbers() -> None:
    assert parse_answers("ANSWER: 3", 30, False) == {28}
    assert parse_answers("ANSWER: A, 4", 30, True) == {0, 29}


class Answering:
    """A ``generate`` that gives one answer and notes what it was asked."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.prompt = ""
        self.settings: dict[str, Any] = {}

    async def __call__(self, state: TaskState, tool_calls: ToolCalls = "loop", **kwargs: Any) -> TaskState:
        self.prompt, self.settings = state.user_prompt.text, kwargs
        state.output = ModelOutput.from_content("m", self.answer)
        state.messages.append(state.output.message)
        return state


def as_generate(answering: Answering) -> Generate:
    return answering


COLORS = ["red", "green", "blue", "black"]


@pytest.mark.anyio
async def test_a_question_is_asked_and_the_answer_marked() -> None:
    model = Answering("ANSWER: B")
    state = await multiple_choice(max_tokens=5)(a_state("Which?", choices=COLORS), as_generate(model))
    assert "\nWhich?\n\nA) red\nB) green\nC) blue\nD) black" in model.prompt
    assert "'ANSWER: $LETTER'" in model.prompt and "A,B,C,D" in model.prompt
    assert "step by step" not in model.prompt
    assert model.settings == {"max_tokens": 5}
    assert [choice.correct for choice in state.choices] == [False, True, False, False]


@pytest.mark.anyio
async def test_an_answer_that_is_none_marks_nothing() -> None:
    state = await multiple_choice()(a_state(choices=COLORS), as_generate(Answering("B, I guess")))
    assert [choice.correct for choice in state.choices] == [None] * 4


@pytest.mark.anyio
@pytest.mark.parametrize("several", [False, True])
async def test_the_model_may_be_told_to_reason_and_to_give_several_letters(several: bool) -> None:
    model = Answering("Hm.\nANSWER: A,C")
    solve = multiple_choice(cot=True, multiple_correct=several)
    state = await solve(a_state(choices=COLORS), as_generate(model))
    assert "step by step" in model.prompt
    assert ("$LETTERS" in model.prompt) == several
    assert [choice.correct for choice in state.choices] == ([True, False, True, False] if several else [None] * 4)


@pytest.mark.anyio
async def test_a_template_may_be_given_or_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "ask.txt"
    file.write_text("{question} {choices}!", encoding="utf-8")
    for template in ("{question} {choices}!", str(file)):
        model = Answering("ANSWER: A")
        await multiple_choice(template=template)(a_state("Q", choices=["x"]), as_generate(model))
        assert model.prompt == "Q A) x!"


def test_a_template_must_have_room_for_question_and_choices() -> None:
    with pytest.raises(ValueError, match=r"must contain \{question\}"):
        multiple_choice(template="{choices}")
    with pytest.raises(ValueError, match=r"must contain \{question\} and \{choices\}"):
        multiple_choice(template="nothing")


@pytest.mark.anyio
async def test_samples_without_choices_are_refused() -> None:
    with pytest.raises(ValueError, match="sample 1 has none"):
        await multiple_choice()(a_state(), as_generate(Answering("A")))


@pytest.mark.anyio
async def test_choices_that_the_dataset_shuffled_stay_shuffled() -> None:
    state = a_state(choices=COLORS)
    state.choices.shuffle(random.Random(3))
    assert [choice.original_position for choice in state.choices] == [3, 0, 2, 1]
    state = await multiple_choice()(state, as_generate(Answering("ANSWER: B")))
    assert [(choice.value, choice.correct) for choice in state.choices][1] == ("red", True)
    assert state.output.completion == "ANSWER: B"


@pytest.mark.anyio
async def test_choices_shuffled_for_the_model_alone_read_as_if_they_had_not_been() -> None:
    model = Answering("Because.\nANSWER: B")
    state = await multiple_choice(shuffle=random.Random(3))(a_state("Q", choices=COLORS), as_generate(model))
    assert "A) black\nB) red\nC) blue\nD) green" in model.prompt
    assert "A) red\nB) green\nC) blue\nD) black" in state.user_prompt.text
    assert state.output.completion == "ANSWER: A"
    assert turns(state)[-1] == ("assistant", "ANSWER: A")
    assert [choice.value for choice in state.choices if choice.correct] == ["red"]
