from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from proctor.schema import Score
from proctor.scorer._decorators import scorer
from proctor.scorer._mean import mean
from proctor.scorer._scoring import no_response, wants_target
from proctor.scorer._stderr import stderr
from proctor.scorer._types import Scorer
from proctor.scorer._words import normal_words
from proctor.solver import Target, TaskState


@scorer(metrics=[mean(), stderr()])
def f1(answer_fn: Callable[[str], str] | None = None, stop_words: list[str] | None = None) -> Scorer:
    """The F1 of the answer's words and those of the target that fits best, to two decimals.

    Args:
        answer_fn: takes the answer out of the model's output.
        stop_words: words that do not count (besides articles).
    """

    async def score(state: TaskState, target: Target) -> Score:
        completion = state.output.completion
        answer = answer_fn(completion) if answer_fn else completion
        best = max((word_f1(answer, one, stop_words or ()) for one in target), default=0.0)
        return Score(value=round(best, 2), answer=answer, reason=no_response(completion))

    return wants_target(score)


def word_f1(answer: str, target: str, stop_words: Collection[str] = ()) -> float:
    """The harmonic mean of precision and recall of the words of ``answer``, each as often as it stands there."""
    given, wanted = Counter(normal_words(answer, stop_words)), Counter(normal_words(target, stop_words))
    common = (given & wanted).total()
    return 2 * common / (given.total() + wanted.total()) if common else 0.0
