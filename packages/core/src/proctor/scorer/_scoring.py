"""What the scorers that compare text with targets have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from proctor.schema import CORRECT, INCORRECT, Score
from proctor.scorer._types import Scorer
from proctor.solver import Target, TaskState

Compare: TypeAlias = Callable[[str, str], tuple[str | None, bool]]


def no_response(completion: str) -> str | None:
    """The reason of a score for an answer without text."""
    return None if completion.strip() else "no_response"


def text_scorer(compare: Compare) -> Scorer:
    """A scorer that is satisfied when ``compare(completion, target)`` says yes to one of the targets.

    ``compare`` also says what it took as the answer; with no match, that of the last target stands.
    """

    async def score(state: TaskState, target: Target) -> Score:
        completion = state.output.completion
        answer: str | None = None
        matched = False
        for one in target:
            answer, matched = compare(completion, one)
            if matched:
                break
        return Score(
            value=CORRECT if matched else INCORRECT,
            answer=answer,
            explanation=completion,
            reason=no_response(completion),
        )

    return score
