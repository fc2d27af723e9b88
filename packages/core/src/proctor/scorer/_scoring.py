"""What the scorers that compare text with targets have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeAlias

from proctor.contracts import UsageError
from proctor.schema import CORRECT, INCORRECT, Sample, Score, assembled
from proctor.scorer._decorators import short_name
from proctor.scorer._types import Scorer
from proctor.solver import Target, TaskState

Compare: TypeAlias = Callable[[str, str], tuple[str | None, bool]]


def no_response(completion: str) -> str | None:
    """The reason of a score for an answer without text."""
    return None if completion.strip() else "no_response"


NO_TARGET = "no_target"
"""The reason of a score for a sample that has nothing to compare the answer with."""

_WANTS_TARGET = "__proctor_wants_target__"
_LOOKED_AT = 1000


def has_target(target: str | Sequence[str]) -> bool:
    """Whether there is any text in ``target``: a blank one stands in, or ends, any answer."""
    return bool(target.strip()) if isinstance(target, str) else any(one.strip() for one in target)


def without_target(state: TaskState) -> Score:
    """The score of a sample without a target: none, with the reason."""
    return Score.unscored(
        NO_TARGET,
        explanation=f"Sample {state.sample_id!r} has no target to compare the answer with.",
    )


def wants_target(score: Scorer) -> Scorer:
    """``score``, which is asked about samples that have a target only, and sees no blank ones; others stay unscored."""

    async def judge(state: TaskState, target: Target) -> Score | None:
        if not has_target(target):
            return without_target(state)
        if len(target) > 1:
            target = Target([one for one in target if one.strip()])
        return await score(state, target)

    return marked(judge)


def marked(scorer: Scorer) -> Scorer:
    """Note that ``scorer`` can do nothing without targets, for ``check_targets``."""
    setattr(scorer, _WANTS_TARGET, True)
    return scorer


def check_targets(scorers: Iterable[Scorer], samples: Iterable[Sample]) -> None:
    """Refuse scorers that compare answers with targets for samples none of which has one.

    Args:
        scorers: a task's scorers.
        samples: its samples; reading ends at the first that has a target, or after a thousand.

    Raises:
        UsageError: if a built-in scorer that needs targets would find none.
    """
    wanting = [short_name(scorer) for scorer in scorers if getattr(scorer, _WANTS_TARGET, False)]
    if not wanting:
        return
    seen = 0
    for sample in islice(samples, _LOOKED_AT):
        if has_target(sample.target) or sample.target == []:  # an empty list is an author's word, not a default
            return
        seen += 1
    if seen:
        raise UsageError(
            f"the scorer {wanting[0]} compares answers with targets, but {_none_of(seen)} has one. Say which field of "
            f"the data holds the target, such as sample_fields=FieldSpec(target='answer'), or give Sample(target=...); "
            f"or use a scorer that needs none, such as model_graded_qa()."
        )


def _none_of(seen: int) -> str:
    return "no sample" if seen < _LOOKED_AT else f"none of the first {seen:,} samples"


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
        return assembled(
            Score,
            {
                "value": CORRECT if matched else INCORRECT,
                "answer": answer,
                "explanation": completion,
                "reason": no_response(completion),
                "metadata": None,
                "history": [],
            },
        )

    return wants_target(score)
