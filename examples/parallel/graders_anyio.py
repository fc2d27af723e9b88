"""Three graders at once, and what most of them say.

    proctor eval examples/parallel/graders_anyio.py --model openai/gpt-5

The three requests are on their way together, so a sample waits for the slowest grader and not for all of them in turn.
It runs on asyncio and on trio (`--async-backend trio`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from proctor import Task, task
from proctor.dataset import Sample
from proctor.model import get_model
from proctor.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
from proctor.solver import TaskState, generate
from proctor.util import collect

GRADERS = ("openai/gpt-5-mini", "openai/gpt-4.1-mini", "openai/gpt-4o-mini")
QUESTION = """\
Question: {question}
Answer: {answer}
The right answer: {target}

Does the answer agree with the right one? Reply with YES or NO.
"""


@task
def capitals(graders: Sequence[str] = GRADERS) -> Task:
    """Capitals of countries, judged by three models.

    Args:
        graders: the models that judge.
    """
    return Task(
        dataset=[
            Sample(input="What is the capital of Australia?", target="Canberra"),
            Sample(input="What is the capital of Canada?", target="Ottawa"),
        ],
        solver=generate(),
        scorer=majority(graders),
    )


@scorer(metrics=[accuracy(), stderr()])
def majority(graders: Sequence[str]) -> Scorer:
    """Correct when most graders say so."""

    async def score(state: TaskState, target: Target) -> Score:
        prompt = QUESTION.format(question=state.input_text, answer=state.output.completion, target=target.text)
        replies = await collect(*[get_model(grader).generate(prompt) for grader in graders])
        votes = Counter("YES" in reply.completion.upper() for reply in replies)
        return Score(
            value=CORRECT if votes[True] > votes[False] else INCORRECT,
            answer=state.output.completion,
            explanation=f"{votes[True]} of {len(replies)} graders agree",
        )

    return score
