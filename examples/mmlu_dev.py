"""MMLU, its 281 development questions of four options in 57 subjects (see data/mmlu_dev.LICENSE).

    proctor eval examples/mmlu_dev.py --model llamacpp/smollm2-135m --limit 50
    proctor eval examples/mmlu_dev.py --model openai/gpt-5 -T subject=astronomy -T cot=true

The questions are ordered so that any first part covers as many subjects as it can: `--limit 57` is one of each.

They are asked like any multiple-choice question, whoever is asked. A model as small as SmolLM2-135M knows little of
them and seldom keeps to the form of the answer, so it scores near or below chance (0.25); the log says which replies
had no answer in them. Development questions are public and are used as examples in prompts: a score on them shows that
things work, not how good a model is.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from proctor import Task, task
from proctor.dataset import Sample, csv_dataset
from proctor.model import GenerateConfig
from proctor.scorer import choice
from proctor.solver import multiple_choice

QUESTIONS = Path(__file__).parent / "data" / "mmlu_dev.csv"


def to_sample(row: dict[str, Any]) -> Sample:
    """A row of the CSV file as a sample."""
    return Sample(
        id=row["id"],
        input=row["question"],
        choices=[row[letter] for letter in "ABCD"],
        target=row["answer"],
        metadata={"subject": row["subject"]},
    )


@task
def mmlu_dev(subject: str | None = None, cot: bool = False) -> Task:
    """Multiple-choice questions of school, university and professions.

    Args:
        subject: one subject such as ``astronomy``, instead of all 57.
        cot: let the model reason before it answers.
    """
    dataset = csv_dataset(QUESTIONS, to_sample)
    if subject is not None:
        known = sorted({sample.metadata["subject"] for sample in dataset if sample.metadata})
        if subject not in known:
            close = ", ".join(difflib.get_close_matches(subject, known)) or ", ".join(known)
            raise ValueError(f"no subject is called {subject!r}; there are: {close}")
        dataset = dataset.filter(lambda sample: (sample.metadata or {})["subject"] == subject)
    return Task(
        dataset=dataset,
        solver=multiple_choice(cot=cot),
        scorer=choice(),
        config=GenerateConfig(temperature=0.0),
    )
