"""The choices of a multiple-choice sample."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

__all__ = ["Choice", "Choices", "answer_character", "answer_index"]

_LETTERS = 26


def answer_character(index: int) -> str:
    """What the choice at ``index`` (from 0) is called: ``A`` to ``Z``, then ``1``, ``2``, ..."""
    return chr(ord("A") + index) if index < _LETTERS else str(index - _LETTERS + 1)


def answer_index(char: str) -> int:
    """Where the choice called ``char`` stands (from 0), the reverse of ``answer_character``.

    Raises:
        ValueError: if ``char`` is neither a letter nor a number from 1.
    """
    if len(char) == 1 and "A" <= char.upper() <= "Z":
        return ord(char.upper()) - ord("A")
    if char.isdecimal() and int(char) > 0:
        return _LETTERS + int(char) - 1
    raise ValueError(f"{char!r} is not the name of a choice: expected A to Z, or a number from 1")


@dataclass(slots=True)
class Choice:
    """One choice. ``correct`` is what the model said of it (``None``: nothing); ``original_position`` counts from 0."""

    value: str
    correct: bool | None
    original_position: int


class Choices(Sequence[Choice]):
    """The choices in the order in which the model sees them.

    Args:
        choices: their texts, or ``Choice`` objects.
    """

    __slots__ = ("_choices",)

    def __init__(self, choices: Sequence[str | Choice] = ()) -> None:
        self._choices: list[Choice] = [
            choice if isinstance(choice, Choice) else Choice(choice, None, position)
            for position, choice in enumerate(choices)
        ]

    @overload
    def __getitem__(self, index: int) -> Choice: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Choice]: ...

    def __getitem__(self, index: int | slice) -> Choice | Sequence[Choice]:
        return self._choices[index]

    def __len__(self) -> int:
        return len(self._choices)

    def __repr__(self) -> str:
        return f"Choices({self._choices!r})"

    def mark_choice(self, index: int, correct: bool) -> None:
        """Note that the model took the choice at ``index`` for right or wrong."""
        self._choices[index].correct = correct

    def shuffle(self, rand: random.Random | None = None) -> None:
        """Shuffle in place; ``original_position`` of each choice tells where it came from."""
        order = list(range(len(self._choices)))
        # Positions are shuffled, not choices: so a seed gives the order that it gives elsewhere in the field.
        (rand or random.Random()).shuffle(order)
        self._choices = [self._choices[position] for position in order]

    def prompt(self, question: str, template: str) -> str:
        """``template`` with ``{question}``, ``{choices}`` (lines ``A) text``) and ``{letters}`` (``A,B``) filled in."""
        letters = [answer_character(index) for index in range(len(self._choices))]
        lines = [f"{letter}) {choice.value}" for letter, choice in zip(letters, self._choices, strict=True)]
        return template.format(question=question, choices="\n".join(lines), letters=",".join(letters))
