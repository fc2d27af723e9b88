"""Animals and their young: one of the tasks that `proctor eval .` finds in this folder."""

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes


@task
def animals() -> Task:
    """Animals and their young."""
    return Task(
        dataset=[
            Sample(input="What is a young dog called?", target="puppy"),
            Sample(input="What is a young cat called?", target="kitten"),
        ],
        scorer=includes(),
    )
