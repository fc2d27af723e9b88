from __future__ import annotations

from enum import StrEnum
from typing import Literal

from proctor.scorer._decorators import scorer
from proctor.scorer._mean import accuracy
from proctor.scorer._pattern import pattern_scorer
from proctor.scorer._stderr import stderr
from proctor.scorer._types import Scorer

_MARK = r"ANSWER\s*:"
_LAST = rf"(?![\s\S]*{_MARK})"


class AnswerPattern(StrEnum):
    """Regular expressions for answers that end in ``ANSWER: ...``; of several, the last counts."""

    LETTER = rf"(?i){_MARK}\s*([A-Z])(?!\w){_LAST}"
    """A single letter, whatever follows it."""

    WORD = rf"(?i){_MARK}\s*(\S+?)[!,.:;?]?\s*?(?:\n|\Z){_LAST}"
    """A word that is alone on its line; one sentence mark after it is not part of it."""

    LINE = rf"(?i){_MARK}\s*([^\n]+)\s*\Z"
    """The rest of the line; nothing may follow it."""


@scorer(metrics=[accuracy(), stderr()])
def answer(pattern: Literal["letter", "word", "line"]) -> Scorer:
    """Whether what stands after ``ANSWER:`` is the target (as the prompts of multiple choice and ``answer`` ask for).

    Args:
        pattern: what the answer is: a letter, a word, or a line at the end.
    """
    expressions = {"letter": AnswerPattern.LETTER, "word": AnswerPattern.WORD, "line": AnswerPattern.LINE}
    return pattern_scorer(expressions[pattern])
