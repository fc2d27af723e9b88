"""Capitals: does a model know them?"""

from __future__ import annotations

from pathlib import Path

from proctor import Task, task
from proctor.dataset import json_dataset
from proctor.scorer import includes
from proctor.solver import generate, system_message

QUESTIONS = Path(__file__).parent / "capitals.jsonl"


@task
def capitals(language: str = "English") -> Task:
    """Asks for the capital of a country.

    Args:
        language: in which to answer.
    """
    return Task(
        dataset=json_dataset(str(QUESTIONS)),
        solver=[system_message(f"Answer with the name of the city only, in {language}."), generate()],
        scorer=includes(),
    )
