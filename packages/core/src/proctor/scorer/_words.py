"""Answers as bags of normalised words (as SQuAD and DROP compare them)."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Collection

_SPLIT = re.compile("[ -]")
_ARTICLES = frozenset(("a", "an", "the"))
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normal_words(text: str, stop_words: Collection[str] = ()) -> list[str]:
    """The words of ``text`` in order: without case, punctuation, articles and stop words; numbers as ``str(float)``.

    Words end at spaces and hyphens. What a line break or a tab joins is one word while punctuation and stop words are
    removed and numbers recognised, and several afterwards.
    """
    ignored = {_normal(word.casefold()) for word in stop_words}
    parts = (_normal(part) for part in _SPLIT.split(text.casefold()))
    words = (word for part in parts if part.strip() not in ignored for word in part.split())
    return [word for word in words if word not in _ARTICLES]


def _normal(part: str) -> str:
    edged = part if _is_number(part) else part.strip(string.punctuation)
    if not _is_number(edged):
        edged = part.translate(_NO_PUNCTUATION)
    return str(float(edged)) if _is_number(edged) else edged


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False
