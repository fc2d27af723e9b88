from __future__ import annotations

import re

from proctor.schema import CORRECT, INCORRECT, Score
from proctor.scorer._decorators import scorer
from proctor.scorer._mean import accuracy
from proctor.scorer._scoring import no_response, wants_target
from proctor.scorer._stderr import stderr
from proctor.scorer._types import Scorer
from proctor.solver import Target, TaskState


@scorer(metrics=[accuracy(), stderr()])
def pattern(pattern: str, ignore_case: bool = True, match_all: bool = False) -> Scorer:
    """Whether what a regular expression finds in the answer is a target.

    Args:
        pattern: the expression, searched for once. Its groups hold the answer; without groups, all that it matches.
        ignore_case: whether upper and lower case are the same, in the expression and in the comparison.
        match_all: whether all groups that took part must be targets, not just one.
    """
    return pattern_scorer(pattern, ignore_case, match_all)


def pattern_scorer(pattern: str, ignore_case: bool = True, match_all: bool = False) -> Scorer:
    """The scorer that ``pattern`` makes, without its name."""
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)

    async def score(state: TaskState, target: Target) -> Score:
        completion = state.output.completion
        missing = no_response(completion)
        found = compiled.search(completion)
        if found is None:
            return Score(
                value=INCORRECT,
                explanation=f"The pattern found nothing in the answer: {completion}",
                reason=missing or "invalid_response_format",
            )
        answer, matched = _compare(found, target, ignore_case, match_all)
        return Score(value=CORRECT if matched else INCORRECT, answer=answer, explanation=completion, reason=missing)

    return wants_target(score)


def _compare(found: re.Match[str], target: Target, ignore_case: bool, match_all: bool) -> tuple[str | None, bool]:
    def fold(text: str) -> str:
        return text.lower() if ignore_case else text

    wanted = {fold(one) for one in target}
    groups = found.groups() or (found.group(0),)
    taken = [group for group in groups if group is not None]
    if match_all:
        if taken and all(fold(group) in wanted for group in taken):
            return target.text, True
        return None, False
    for group in taken:
        if group and fold(group) in wanted:
            return group, True
    return (groups[0] if len(groups) == 1 else None), False
