from __future__ import annotations

from proctor.scorer._decorators import scorer
from proctor.scorer._mean import accuracy
from proctor.scorer._scoring import text_scorer
from proctor.scorer._stderr import stderr
from proctor.scorer._types import Scorer


@scorer(metrics=[accuracy(), stderr()])
def includes(ignore_case: bool = True) -> Scorer:
    """Whether the target stands anywhere in the answer.

    Args:
        ignore_case: whether upper and lower case are the same.
    """

    def compare(completion: str, target: str) -> tuple[str, bool]:
        if ignore_case:
            completion, target = completion.casefold(), target.casefold()
        return completion, target in completion

    return text_scorer(compare)
