"""Oceans: one of the tasks that `proctor eval .` finds in this folder."""

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes


@task
def oceans() -> Task:
    """Oceans."""
    return Task(
        dataset=[
            Sample(input="Which ocean is the largest?", target="Pacific"),
            Sample(input="Which ocean lies between Africa and Australia?", target="Indian"),
        ],
        scorer=includes(),
    )
