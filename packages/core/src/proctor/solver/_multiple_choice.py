"""Multiple-choice questions: asked with lettered choices, answered with ``ANSWER: <letters>``."""

from __future__ import annotations

import random
import re
from typing import Final

from proctor.schema import ChatMessageAssistant
from proctor.solver._choices import Choices, answer_character, answer_index
from proctor.solver._solver import Generate, Solver, solver
from proctor.solver._state import TaskState
from proctor.solver._template import template_text

__all__ = ["MultipleChoiceTemplate", "multiple_choice", "parse_answers"]


class MultipleChoiceTemplate:
    """The standard templates. ``{question}``, ``{choices}`` and ``{letters}`` are filled in."""

    SINGLE_ANSWER: Final = (
        "Answer the multiple choice question below. Your whole reply must have this form: 'ANSWER: $LETTER' (without "
        "the quotes), where $LETTER is one of {letters}.\n\n{question}\n\n{choices}"
    )
    SINGLE_ANSWER_COT: Final = (
        "Answer the multiple choice question below. Think step by step first. The last line of your reply must have "
        "this form: 'ANSWER: $LETTER' (without the quotes), where $LETTER is one of {letters}.\n\n"
        "{question}\n\n{choices}"
    )
    MULTIPLE_ANSWER: Final = (
        "Answer the multiple choice question below, of which several choices may be right. Your whole reply must have "
        "this form: 'ANSWER: $LETTERS' (without the quotes), where $LETTERS is one or more of {letters}.\n\n"
        "{question}\n\n{choices}"
    )
    MULTIPLE_ANSWER_COT: Final = (
        "Answer the multiple choice question below, of which several choices may be right. Think step by step first. "
        "The last line of your reply must have this form: 'ANSWER: $LETTERS' (without the quotes), where $LETTERS is "
        "one or more of {letters}.\n\n{question}\n\n{choices}"
    )


@solver
def multiple_choice(
    *,
    template: str | None = None,
    cot: bool = False,
    multiple_correct: bool = False,
    max_tokens: int | None = None,
    shuffle: bool | random.Random = False,
) -> Solver:
    """Ask a multiple-choice question, let the model answer, and mark the choices that it took.

    Score with ``choice()``. Choices that the dataset shuffled are asked in that order; the scorer maps them back.

    Args:
        template: the prompt, or a file that holds it, with ``{question}``, ``{choices}`` and perhaps ``{letters}``.
        cot: let the model reason before it answers (in the standard templates).
        multiple_correct: let it give several letters.
        max_tokens: tokens of the reply at most.
        shuffle: shuffle the choices of each sample for the model alone: in the conversation that is left they stand,
            and are answered, in the dataset's order. ``True`` is at random; a ``Random`` can be repeated.

    Raises:
        ValueError: if the template lacks a placeholder, or a sample has no choices.
    """
    standard = {
        (False, False): MultipleChoiceTemplate.SINGLE_ANSWER,
        (False, True): MultipleChoiceTemplate.SINGLE_ANSWER_COT,
        (True, False): MultipleChoiceTemplate.MULTIPLE_ANSWER,
        (True, True): MultipleChoiceTemplate.MULTIPLE_ANSWER_COT,
    }
    text = standard[multiple_correct, cot] if template is None else template_text(template)
    missing = [name for name in ("{question}", "{choices}") if name not in text]
    if missing:
        raise ValueError(f"the template of multiple_choice() must contain {' and '.join(missing)}")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if not state.choices:
            raise ValueError(f"multiple_choice() needs samples with choices; sample {state.sample_id!r} has none")
        question = state.user_prompt.text
        if shuffle:
            state.choices.shuffle(shuffle if isinstance(shuffle, random.Random) else None)
        state.user_prompt.text = state.choices.prompt(question, text)
        state = await generate(state, max_tokens=max_tokens)
        answers = parse_answers(state.output.completion, len(state.choices), multiple_correct)
        if answers:
            for index in range(len(state.choices)):
                state.choices.mark_choice(index, index in answers)
            if shuffle:
                _as_in_dataset(state, question, text)
        return state

    return solve


_ALNUM = r"[A-Za-z\d](?:[A-Za-z\d ,]*[A-Za-z\d])?"
_MATH = re.compile(rf"\$({_ALNUM})\$")
_BOLD = re.compile(rf"\*\*({_ALNUM})\*\*")
_BRACKETED = re.compile(r"([:,]\s*)\(([A-Za-z\d])\)(?=\s*(?:[,.]|$))", re.MULTILINE)
_ON_LINE = re.compile(r"^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)", re.IGNORECASE | re.MULTILINE)
_ANYWHERE = re.compile(r"ANSWER\s*:\s*([A-Za-z\d ,]+)(?:[^\w]|\n|$|\.)", re.IGNORECASE)


def parse_answers(completion: str, choices: int, multiple_correct: bool) -> set[int]:
    """The positions of the choices that ``completion`` gives after its last ``ANSWER:``; empty when it gives none.

    Letters may stand in bold, in dollar signs or in brackets. Several are separated by commas, by "and", by spaces or
    by nothing. An answer that holds anything else, a letter beyond the choices for example, is no answer. The last
    ``ANSWER:`` that has a line of its own wins over those inside a line.
    """
    text = _BRACKETED.sub(r"\1\2", _BOLD.sub(r"\1", _MATH.sub(r"\1", completion)))
    found = _ON_LINE.findall(text) or _ANYWHERE.findall(text)
    if not found:
        return set()
    answer = found[-1].strip().upper()
    known = {answer_character(index) for index in range(choices)}
    if not multiple_correct:
        names = [answer.strip(",")]
    elif "," in answer or " AND " in answer:
        names = [name.strip() for name in answer.replace(" AND ", ",").split(",") if name.strip()]
    else:
        names = list(answer.replace(" ", ""))
    return {answer_index(name) for name in names} if known.issuperset(names) else set()


def _as_in_dataset(state: TaskState, question: str, template: str) -> None:
    """Rewrite the prompt and the answer as if the choices had not been shuffled for this sample."""
    ordered = sorted(state.choices, key=lambda choice: choice.original_position)
    state.user_prompt.text = Choices(ordered).prompt(question, template)
    letters = ", ".join(answer_character(position) for position, choice in enumerate(ordered) if choice.correct)
    answer = f"ANSWER: {letters}"
    state.output.completion = answer
    if not state.output.empty:
        state.output.message.content = answer
    last = state.messages[-1]
    if isinstance(last, ChatMessageAssistant):
        last.content = answer
