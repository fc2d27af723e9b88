"""Sums: one of the tasks that `proctor eval .` finds in this folder."""

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes


@task
def sums() -> Task:
    """Sums."""
    return Task(
        dataset=[
            Sample(input="What is 2 + 2?", target="4"),
            Sample(input="What is 7 * 6?", target="42"),
        ],
        scorer=includes(),
    )
