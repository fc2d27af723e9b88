"""A first task: two questions, one instruction, and whether the answer is the right number."""

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import match
from proctor.solver import generate, system_message


@task
def hello() -> Task:
    """Sums that a person does at once."""
    questions = {"What is 2 + 2?": "4", "What is 7 * 6?": "42"}
    samples = [Sample(input=question, target=answer) for question, answer in questions.items()]
    return Task(
        dataset=samples,
        solver=[system_message("Answer with the number only."), generate()],
        scorer=match(numeric=True),
    )
