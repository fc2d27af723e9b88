from __future__ import annotations

from proctor.schema import CORRECT, INCORRECT, Score
from proctor.scorer._decorators import scorer
from proctor.scorer._mean import mean
from proctor.scorer._scoring import no_response, wants_target
from proctor.scorer._stderr import stderr
from proctor.scorer._types import Scorer
from proctor.scorer._words import normal_words
from proctor.solver import Target, TaskState


@scorer(metrics=[mean(), stderr()])
def exact() -> Scorer:
    """Whether the answer's words are those of a target, in order; case, punctuation and articles do not count."""

    async def score(state: TaskState, target: Target) -> Score:
        completion = state.output.completion
        words = normal_words(completion)
        matched = bool(words) and any(normal_words(one) == words for one in target)
        return Score(value=CORRECT if matched else INCORRECT, answer=completion, reason=no_response(completion))

    return wants_target(score)
