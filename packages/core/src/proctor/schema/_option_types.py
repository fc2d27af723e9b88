"""What a value of an option may be when it comes from Python and not from text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from proctor.schema._config import ResponseSchema
from proctor.schema._option import Option

__all__ = ["check_type"]

_ANYTHING = frozenset({"sandbox", "solver", "model_cost_config"})  # objects too; who uses them knows which


def check_type(key: str, option: Option, value: Any) -> None:
    """Refuse a value of a type that the option can't have.

    Raises:
        ValueError: saying what it must be.
    """
    known = _TYPES.get(option.form)
    if known is not None and key not in _ANYTHING and not known[0](value):
        raise ValueError(f"it must be {known[1]}, not {type(value).__name__}.")


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _several(value: Any, *, numbers: bool = False) -> bool:
    if isinstance(value, str) or (numbers and _whole(value)):
        return True
    return isinstance(value, Sequence) and all(isinstance(each, str) or (numbers and _whole(each)) for each in value)


def _range(value: Any) -> bool:
    return _whole(value) or (isinstance(value, list | tuple) and len(value) == 2 and all(map(_whole, value)))


def _mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


_TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_text, "text"),
    "choice": (_text, "text"),
    "int": (_whole, "a whole number"),
    "tokens": (_whole, "a whole number"),
    "number": (_number, "a number"),
    "flag": (lambda value: isinstance(value, bool), "True or False"),
    "bool_or_int": (lambda value: isinstance(value, bool) or _whole(value), "True, False or a whole number"),
    "bool_or_text": (lambda value: isinstance(value, bool | str), "True, False or text"),
    "threshold": (lambda value: isinstance(value, bool) or _number(value), "True, False or a number"),
    "texts": (_several, "text, or a list of texts"),
    "specs": (_several, "text, or a list of texts"),
    "ids": (lambda value: _several(value, numbers=True), "a sample id, or a list of them"),
    "range": (_range, "a count, or the first and the last + 1 of a range"),
    "pairs": (_mapping, "a mapping of names to values"),
    "mapping": (_mapping, "a mapping of names to values"),
    "roles": (_mapping, "a mapping of roles to models"),
    "biases": (_mapping, "a mapping of tokens to numbers"),
    "schema": (lambda value: isinstance(value, ResponseSchema | Mapping), "a ResponseSchema, or a mapping"),
}
