"""Capitals of countries: one of the tasks that `proctor eval .` finds in this folder."""

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes


@task
def capitals() -> Task:
    """Capitals of countries."""
    return Task(
        dataset=[
            Sample(input="What is the capital of Peru?", target="Lima"),
            Sample(input="What is the capital of Kenya?", target="Nairobi"),
        ],
        scorer=includes(),
    )
