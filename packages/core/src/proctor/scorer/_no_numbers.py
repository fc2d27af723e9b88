"""Text that is no number, where a mean is taken of scores: it is no score, and it is told of."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from proctor.schema import NOT_A_NUMBER, Score, assembled
from proctor.scorer._value import number_of

_logger = logging.getLogger(__name__)

_TOLD = 100  # keys of dicts may be what a model says: no end of warnings


class NoNumbers:
    """Makes scores that are text, and parts of dicts that are, scores without a value unless a number can be read.

    Args:
        whole: the scorers of which a score that is text counts as none.
        parts: the scorers of which a part of a dict does, each with what says whether a key of theirs has metrics that
            need numbers; ``None`` where it has no metrics, so that nobody need hear of it.
    """

    def __init__(self, whole: Collection[str], parts: Mapping[str, Callable[[str], bool | None]]) -> None:
        self._whole = whole
        self._parts = parts
        self._told: set[tuple[str, str | None]] = set()

    def is_one(self, scorer: str, score: Score) -> bool:
        """Whether a score as a whole is such text."""
        return scorer in self._whole and _is_one(score.value)

    def read(self, scorer: str, scores: Sequence[Score], sample_id: int | str) -> tuple[list[Score], Mapping[str, int]]:
        """The scores of a sample's epochs without such text, and how often each counted key of dicts had some."""
        texts: dict[str, int] = {}
        return [self._read(scorer, score, sample_id, texts) for score in scores], texts

    def _read(self, scorer: str, score: Score, sample_id: int | str, texts: dict[str, int]) -> Score:
        value = score.value
        if type(value) is str:
            if not self.is_one(scorer, score):
                return score
            self._tell(scorer, None, value, sample_id)
            reasoned = with_value(score, math.nan)
            reasoned.reason = NOT_A_NUMBER
            return reasoned
        if type(value) is not dict or (needed := self._parts.get(scorer)) is None:
            return score
        bad = {key: need for key, part in value.items() if _is_one(part) and (need := needed(key)) is not False}
        if not bad:
            return score
        for key in filter(bad.get, bad):
            texts[key] = texts.get(key, 0) + 1
            self._tell(scorer, key, value[key], sample_id)
        return with_value(score, {**value, **dict.fromkeys(bad, math.nan)})

    def _tell(self, scorer: str, key: str | None, value: Any, sample_id: int | str) -> None:
        if (scorer, key) in self._told or len(self._told) >= _TOLD:
            return
        self._told.add((scorer, key))
        _logger.warning(
            "the scorer %s gave %.80r%s for sample %r, which is no number: such samples count as without a score%s "
            "(%s). Give numbers, C, I, P or N, or truth values.",
            scorer,
            value,
            "" if key is None else f" as {key!r}",
            sample_id,
            "" if key is None else " of that key",
            NOT_A_NUMBER,
        )


def _is_one(value: Any) -> bool:
    return type(value) is str and number_of(value) is None


def with_value(score: Score, value: Any) -> Score:
    """``score`` with another value, and without a history."""
    return assembled(Score, score_fields(score, value))


def score_fields(score: Score, value: Any) -> dict[str, Any]:
    """The fields of ``score``, in the order of the class, with another value and without a history."""
    known = score.__dict__  # an attribute of a record costs three times as much
    return {
        "value": value,
        "answer": known["answer"],
        "explanation": known["explanation"],
        "reason": known["reason"],
        "metadata": known["metadata"],
        "history": [],
    }
