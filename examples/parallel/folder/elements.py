"""Chemical elements: one of the tasks that `proctor eval .` finds in this folder."""

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes


@task
def elements() -> Task:
    """Chemical elements."""
    return Task(
        dataset=[
            Sample(input="Which element has the symbol Fe?", target="iron"),
            Sample(input="Which element has the symbol Au?", target="gold"),
        ],
        scorer=includes(),
    )
