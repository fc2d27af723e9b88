"""From the value of a score to a number."""

from __future__ import annotations

import logging
from typing import Any

from proctor.contracts import UsageError
from proctor.schema import CORRECT, INCORRECT, NOANSWER, PARTIAL
from proctor.scorer._types import ValueToFloat

logger = logging.getLogger(__name__)

_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_LETTERS = {NOANSWER: 0.0, INCORRECT: 0.0, PARTIAL: 0.5, CORRECT: 1.0}
_reported: set[str] = set()


def value_to_float(
    correct: Any = CORRECT, incorrect: Any = INCORRECT, partial: Any = PARTIAL, noanswer: Any = NOANSWER
) -> ValueToFloat:
    """A function from a score's value to a number.

    ``correct`` is 1, ``partial`` 0.5, ``incorrect`` and ``noanswer`` 0; numbers and truth values are themselves; text
    that is a number, ``yes``, ``true``, ``no`` or ``false`` (in any case) is read. Anything else is 0, with a warning.
    """
    meant = ((noanswer, 0.0), (incorrect, 0.0), (partial, 0.5), (correct, 1.0))
    known: dict[Any, float] = {name: number for name, number in meant if isinstance(name, (str, int, float))}

    def convert(value: Any) -> float:
        kind = type(value)
        if kind is float or kind is int:
            # A number given as `correct` (such as 5) still means 1.
            return float(known.get(value, value))
        if kind is str:
            number = known.get(value)
            return _read(value) if number is None else number
        if isinstance(value, (bool, int, float)):
            return float(known.get(value, value))
        # A missing value counts as 0 wherever it is allowed: in a dict of scores.
        return 0.0 if value is None else _unknown(value)

    return convert


def of_metric(given: ValueToFloat) -> ValueToFloat:
    """What a metric converts with that was ``given`` a function: the default, but a dict or a list has no number."""
    return _single if given is to_float else given


def _single(value: Any) -> float:
    if type(value) is float:
        return value
    if isinstance(value, (dict, list)):
        raise UsageError(
            f"scores that are a {type(value).__name__}, such as {repr(value)[:80]}, are no numbers: for a dict, give "
            f"metrics by key, such as metrics={{'*': [mean()]}}; for a list, a metric of your own that takes lists"
        )
    return to_float(value)


def number_of(value: Any) -> float | None:
    """The number that ``value`` is, by the default letters and words; ``None`` for what is none."""
    if isinstance(value, str):
        number = _LETTERS.get(value)
        return _number_in(value) if number is None else number
    return float(value) if hasattr(value, "__float__") else None


def _read(text: str) -> float:
    number = _number_in(text)
    return _unknown(text) if number is None else number


def _number_in(text: str) -> float | None:
    word = _WORDS.get(text.lower())
    if word is not None:
        return word
    try:
        return float(text)
    except ValueError:
        return None


def _unknown(value: Any) -> float:
    shown = repr(value)[:80]
    # Once a value, or a kind of them: a hundred thousand samples would say it a hundred thousand times.
    key = type(value).__name__ if isinstance(value, (dict, list)) else shown
    if key not in _reported and len(_reported) < 100:
        _reported.add(key)
        logger.warning("the score value %s is no number and counts as 0", shown)
    return 0.0


to_float = value_to_float()
