"""Planets: one of the tasks that `proctor eval .` finds in this folder."""

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes


@task
def planets() -> Task:
    """Planets."""
    return Task(
        dataset=[
            Sample(input="Which planet is the largest?", target="Jupiter"),
            Sample(input="Which planet is nearest to the sun?", target="Mercury"),
        ],
        scorer=includes(),
    )
