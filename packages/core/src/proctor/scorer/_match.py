from __future__ import annotations

import string
from typing import Literal, TypeAlias

from proctor.scorer._decorators import scorer
from proctor.scorer._mean import accuracy
from proctor.scorer._numbers import format_number, number_words, strip_markup, whole_number
from proctor.scorer._scoring import text_scorer
from proctor.scorer._stderr import stderr
from proctor.scorer._types import Scorer

Location: TypeAlias = Literal["begin", "end", "any", "exact"]

_EDGES = string.punctuation + string.whitespace


@scorer(metrics=[accuracy(), stderr()])
def match(location: Location = "end", *, ignore_case: bool = True, numeric: bool = False) -> Scorer:
    """Whether the target stands at the beginning, at the end, or anywhere in the answer, or is all of it.

    Args:
        location: where.
        ignore_case: whether upper and lower case are the same.
        numeric: whether a target that is a number is compared as a number: the first, last or any number of the answer,
            without currency, thousands separators and markup, to five significant digits.
    """

    def compare(completion: str, target: str) -> tuple[str, bool]:
        return match_text(completion, target, location, ignore_case, numeric)

    return text_scorer(compare)


def match_text(
    value: str, target: str, location: Location = "end", ignore_case: bool = True, numeric: bool = False
) -> tuple[str, bool]:
    """What counts as the answer in ``value``, and whether it matches ``target``."""
    answer = value.strip()
    text, wanted = answer, target.strip()
    if ignore_case:
        text, wanted = text.casefold(), wanted.casefold()
    if numeric:
        number = whole_number(wanted, loose=True)
        if number is not None:
            return _match_number(answer, text, format_number(number), location)
        # As the field's other implementation does, so that scores agree.
        wanted = strip_markup(wanted) or wanted
    if wanted.strip(_EDGES):
        text, wanted = text.strip(_EDGES), wanted.strip(_EDGES)
    # A target of marks alone, such as "+", is compared as it is: without its marks it would match any answer.
    if location == "begin":
        return answer, text.startswith(wanted)
    if location == "end":
        return answer, text.endswith(wanted)
    if location == "exact":
        return answer, text == wanted
    return answer, wanted in text


def _match_number(answer: str, text: str, wanted: str, location: Location) -> tuple[str, bool]:
    if location == "exact":
        whole = whole_number(text)
        found = strip_markup(text) if whole is None else format_number(whole)
        return found, found == wanted
    numbers = [format_number(number) for number in number_words(text)]
    if location == "any":
        return (wanted, True) if wanted in numbers else (answer, False)
    if not numbers:
        return "", False
    found = numbers[0] if location == "begin" else numbers[-1]
    return found, found == wanted
