"""The grade of one sample: its new scores and events and what they used, as a sample that has nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.schema import EvalSample, add_usage

__all__ = ["graded", "joined_grades", "new_grade"]

_ENDED = "graded"  # in its metadata: the scorers that came to their end, with a score or without


def new_grade(sample: EvalSample, ended: Iterable[str] = ()) -> EvalSample:
    """A grade that has nothing yet, of scorers that have come to their end on a sample."""
    return EvalSample(
        id=sample.id,
        epoch=sample.epoch,
        input="",
        target=sample.target,
        uuid=sample.uuid,
        scores={},
        metadata={_ENDED: list(ended)},
    )


def graded(grade: EvalSample) -> list[str]:
    """The scorers that have come to their end: they need not be asked again."""
    return list(grade.metadata[_ENDED])


def joined_grades(sample: EvalSample, grades: Iterable[EvalSample]) -> EvalSample:
    """Grades of one sample as one; of two scores by a scorer the later counts."""
    whole = new_grade(sample)
    ended: list[str] = []
    scores = dict(whole.scores or {})
    for one in grades:
        ended += graded(one)
        scores |= one.scores or {}
        whole.events = [*whole.events, *one.events]
        add_usage(whole.model_usage, one.model_usage)
        add_usage(whole.role_usage, one.role_usage)
    whole.scores, whole.metadata = scores, {_ENDED: ended}
    return whole
