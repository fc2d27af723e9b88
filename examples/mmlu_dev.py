"""MMLU, its 281 development questions of four options in 57 subjects (see data/mmlu_dev.LICENSE).

    proctor eval examples/mmlu_dev.py --model llamacpp/smollm2-135m --limit 50
    proctor eval examples/mmlu_dev.py --model openai/gpt-5 -T subject=astronomy -T cot=true

The questions are ordered so that any first part covers as many subjects as it can: `--limit 57` is one of each.

A solved example goes before each question (MMLU is asked with examples; this is none of its questions), since a model
as small as SmolLM2-135M does not keep to a form that it has not seen. It then scores near chance, 0.25: it gives nearly
always the letter of the example. Development questions are public and are used as examples in prompts: a score on
them shows that things work, not how good a model is.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from proctor import Task, task
from proctor.dataset import Sample, csv_dataset
from proctor.model import ChatMessageAssistant, ChatMessageUser, GenerateConfig
from proctor.scorer import choice
from proctor.solver import (
    Choices,
    Generate,
    MultipleChoiceTemplate,
    Solver,
    TaskState,
    chain,
    multiple_choice,
    solver,
)

QUESTIONS = Path(__file__).parent / "data" / "mmlu_dev.csv"
SOLVED = (
    ("How many days are there in a week?", ["Five", "Six", "Seven", "Eight"], "C"),
    ("Which of these animals lays eggs?", ["A hen", "A cow", "A horse", "A dog"], "A"),
    ("What do people use to see how hot it is?", ["A ruler", "A thermometer", "A clock", "A scale"], "B"),
    ("Which of these is a colour?", ["Loud", "Heavy", "Slow", "Green"], "D"),
)


def to_sample(row: dict[str, Any]) -> Sample:
    """A row of the CSV file as a sample."""
    return Sample(
        id=row["id"],
        input=row["question"],
        choices=[row[letter] for letter in "ABCD"],
        target=row["answer"],
        metadata={"subject": row["subject"]},
    )


@solver
def solved_examples(count: int) -> Solver:
    """Put questions with their answers before the sample's own, in the form in which it will be asked."""
    turns = []
    for question, choices, answer in SOLVED[:count]:
        turns.append((Choices(choices).prompt(question, MultipleChoiceTemplate.SINGLE_ANSWER), f"ANSWER: {answer}"))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        for asked, answered in reversed(turns):
            state.messages[:0] = [ChatMessageUser(content=asked), ChatMessageAssistant(content=answered)]
        return state

    return solve


@task
def mmlu_dev(subject: str | None = None, cot: bool = False, shots: int = 1) -> Task:
    """Multiple-choice questions of school, university and professions.

    Args:
        subject: one subject such as ``astronomy``, instead of all 57.
        cot: let the model reason before it answers, without solved examples.
        shots: how many solved examples go before each question, 0 to 4.
    """
    if not 0 <= shots <= len(SOLVED):
        raise ValueError(f"shots must be 0 to {len(SOLVED)}, not {shots}")
    dataset = csv_dataset(QUESTIONS, to_sample)
    if subject is not None:
        known = sorted({sample.metadata["subject"] for sample in dataset if sample.metadata})
        if subject not in known:
            close = ", ".join(difflib.get_close_matches(subject, known)) or ", ".join(known)
            raise ValueError(f"no subject is called {subject!r}; there are: {close}")
        dataset = dataset.filter(lambda sample: (sample.metadata or {})["subject"] == subject)
    return Task(
        dataset=dataset,
        solver=multiple_choice(cot=True) if cot else chain(solved_examples(shots), multiple_choice()),
        scorer=choice(),
        config=GenerateConfig(temperature=0.0),
    )
