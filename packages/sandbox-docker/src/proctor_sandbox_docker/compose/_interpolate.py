"""Variables in the texts of a compose file: ``$NAME``, ``${NAME}``, defaults, demands, ``$$``.

The forms are those of the Compose specification, chapter "Interpolation", nested defaults included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

__all__ = ["InterpolationError", "MissingVariableError", "interpolate"]

Lookup: TypeAlias = Callable[[str], str | None]
"""The value of a variable, or ``None`` when it is not set."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FORMS = (":-", "-", ":?", "?", ":+", "+")


class InterpolationError(ValueError):
    """A ``$`` that starts nothing that is known."""


class MissingVariableError(InterpolationError):
    """A variable without a value, and without a default where it stands.

    Args:
        name: of the variable.
        said: what the file's author says of it (``${NAME:?said}``).
    """

    def __init__(self, name: str, said: str = "") -> None:
        super().__init__(f"the variable {name} is not set" + (f": {said}" if said else ""))
        self.name = name


def interpolate(text: str, variables: Mapping[str, str] | Lookup) -> str:
    """``text`` with its variables replaced by their values, and ``$$`` by one ``$``.

    Args:
        text: as it stands in the file.
        variables: the values by name.

    Raises:
        MissingVariableError: a variable is not set, and the text gives no default for it.
        InterpolationError: the text is malformed.
    """
    lookup = variables.get if isinstance(variables, Mapping) else variables
    found, end = _until(text, 0, lookup, inside=False)
    assert end == len(text)
    return found


def _until(text: str, at: int, lookup: Lookup, inside: bool) -> tuple[str, int]:
    """What stands from ``at`` to the end (``inside`` braces: to the closing one), and where that is."""
    parts = []
    while at < len(text):
        if inside and text[at] == "}":
            break
        if text[at] != "$":
            parts.append(text[at])
            at += 1
        else:
            part, at = _dollar(text, at, lookup)
            parts.append(part)
    return "".join(parts), at


def _dollar(text: str, at: int, lookup: Lookup) -> tuple[str, int]:
    after = text[at + 1 : at + 2]
    if after == "$":
        return "$", at + 2
    if after == "{":
        return _braces(text, at, lookup)
    name = _NAME.match(text, at + 1)
    if name is None:
        raise InterpolationError(f"{text[at : at + 12]!r} is no variable; a `$` itself is written `$$`")
    return _demanded(name[0], lookup), name.end()


def _braces(text: str, at: int, lookup: Lookup) -> tuple[str, int]:
    name = _NAME.match(text, at + 2)
    if name is None:
        raise InterpolationError(f"{text[at : at + 12]!r} names no variable; a `$` itself is written `$$`")
    here = name.end()
    form = next((each for each in _FORMS if text.startswith(each, here)), "")
    value = lookup(name[0])
    used = _uses_word(form, value)
    # What is not used is passed over: a variable that only stands in there need not be set.
    word, end = _until(text, here + len(form), lookup if used else _anything, inside=True)
    if text[end : end + 1] != "}" or (not form and word):
        raise InterpolationError(
            f"{text[at : end + 1]!r} is not one of ${{NAME}}, ${{NAME:-default}}, ${{NAME:?error}}"
        )
    if not form:
        return _demanded(name[0], lookup), end + 1
    if form in (":?", "?") and used:
        raise MissingVariableError(name[0], word)
    if form in (":+", "+"):
        return (word if used else ""), end + 1
    return (word if used else value or ""), end + 1


def _uses_word(form: str, value: str | None) -> bool:
    """Whether what stands after the form is used: a default, an error, or a replacement."""
    missing = not value if form.startswith(":") else value is None
    return missing != form.endswith("+")


def _demanded(name: str, lookup: Lookup) -> str:
    value = lookup(name)
    if value is None:
        raise MissingVariableError(name)
    return value


def _anything(name: str) -> str:
    return "x"
