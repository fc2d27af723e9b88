"""Scores."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field

from proctor.schema._base import Record

__all__ = ["CORRECT", "INCORRECT", "NOANSWER", "NOT_A_NUMBER", "PARTIAL", "Provenance", "Score", "ScoreEdit", "Value"]

CORRECT = "C"
INCORRECT = "I"
PARTIAL = "P"
NOANSWER = "N"
NOT_A_NUMBER = "not_a_number"
"""The reason of a score that is text where a number is needed."""

Scalar: TypeAlias = str | int | float | bool
Value: TypeAlias = Scalar | list[Scalar] | dict[str, Scalar | None]

UNCHANGED: Literal["UNCHANGED"] = "UNCHANGED"


class Provenance(Record):
    """Who changed something, when (ISO 8601, UTC) and why."""

    author: str
    timestamp: str
    reason: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class ScoreEdit(Record):
    """A change of a score; fields that stay as they were hold the string ``UNCHANGED``."""

    value: Any = UNCHANGED
    answer: str | None = UNCHANGED
    explanation: str | None = UNCHANGED
    reason: str | None = UNCHANGED
    metadata: dict[str, Any] | Literal["UNCHANGED"] | None = UNCHANGED
    provenance: Provenance | None = None


class Score(Record):
    """What a scorer thought of a sample. A ``value`` of NaN means that the sample could not be scored."""

    value: Value
    answer: str | None = None
    explanation: str | None = None
    reason: str | None = None
    metadata: dict[str, Any] | None = None
    history: list[ScoreEdit] = Field(default_factory=list)

    @classmethod
    def unscored(cls, reason: str, *, explanation: str | None = None, **metadata: Any) -> Score:
        """A score that counts as missing; ``reason`` says why: ``refusal``, ``grader_failed``, or your own word."""
        return cls(value=float("nan"), reason=reason, explanation=explanation, metadata=metadata or None)

    def as_float(self) -> float:
        """The value as a number: letters C, I, P, N are 1, 0, 0.5, 0.

        Raises:
            ValueError: if the value is a list, a dict or text that is no number.
        """
        if isinstance(self.value, str):
            letter = {CORRECT: 1.0, INCORRECT: 0.0, PARTIAL: 0.5, NOANSWER: 0.0}.get(self.value)
            return float(self.value) if letter is None else letter
        if isinstance(self.value, (int, float)):
            return float(self.value)
        raise ValueError(f"a score value of type {type(self.value).__name__} is not one number")

    def as_str(self) -> str:
        """The value as text."""
        return str(self.value)

    def as_int(self) -> int:
        """The value as an integer."""
        return int(self.as_float())

    def as_bool(self) -> bool:
        """Whether the value, as a number, is not zero."""
        return bool(self.as_float())
