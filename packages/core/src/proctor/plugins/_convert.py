"""Text from a command line as the type that a field is annotated with."""

from __future__ import annotations

import collections.abc
import enum
import json
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

_BOOLS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_SEQUENCES: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.Iterable: list,
}
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def split_commas(text: str) -> list[str]:
    """The parts of ``text`` between commas that stand outside brackets and double quotes; empty parts are dropped."""
    parts, depth, quoted, start = [], 0, False, 0
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "[{(":
            depth += 1
        elif not quoted and character in "]})":
            depth -= 1
        elif character == "," and not quoted and depth <= 0:
            parts.append(text[start:position])
            start = position + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def convert(value: Any, hint: Any) -> Any:
    """``value`` as the type ``hint`` says.

    Raises:
        ValueError: whose text says what is expected, to follow "must be".
    """
    origin = get_origin(hint)
    if hint is Any or hint is object:
        return value
    if origin is Annotated:
        return convert(value, get_args(hint)[0])
    if origin in (Union, types.UnionType):
        return _union(value, hint)
    if origin is Literal:
        for option in get_args(hint):
            if value == option or (isinstance(value, str) and value == str(option)):
                return option
        raise ValueError(spell(hint))
    plain = origin or hint
    if plain in _SEQUENCES:
        return _sequence(value, hint, plain)
    if plain in _MAPPINGS:
        return _mapping(value, hint)
    if plain is collections.abc.Callable and callable(value):
        return value
    return _scalar(value, plain)


def _scalar(value: Any, hint: Any) -> Any:
    text = value.strip() if isinstance(value, str) else None
    try:
        if hint is bool:
            return value if isinstance(value, bool) else _BOOLS[str(value).strip().lower()]
        if hint is int:
            return _integer(value if text is None else text)
        if hint is float and not isinstance(value, bool):
            return float(value)
        if hint is str and isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return str(value)
        if hint is Path and isinstance(value, (str, Path)):
            return Path(value).expanduser()
        if isinstance(hint, type) and issubclass(hint, enum.Enum) and not isinstance(value, hint):
            return next(item for item in hint if str(value) in {str(item.value), item.name})
    except (KeyError, ValueError, TypeError, OverflowError, StopIteration):
        raise ValueError(spell(hint)) from None
    if isinstance(hint, type) and isinstance(value, hint):
        return value
    raise ValueError(spell(hint))


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"[-+]?\d[\d_]*", value) else _integer(float(value))
    if int(value) != value:
        raise ValueError
    return int(value)


def _union(value: Any, hint: Any) -> Any:
    members = get_args(hint)
    if types.NoneType in members and (value is None or str(value).strip().lower() in {"none", "null"}):
        return None
    # An object that already is one of the members stays; text is read as text last, since it always could be.
    for member in members:
        if not isinstance(value, str) and isinstance(member, type) and type(value) is member:
            return value
    for member in sorted((m for m in members if m is not types.NoneType), key=lambda member: member is str):
        try:
            return convert(value, member)
        except ValueError:
            continue
    raise ValueError(spell(hint))


def _parsed(value: Any, opening: str, hint: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith(opening):
        try:
            return json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"{spell(hint)} ({error} in what looks like JSON)") from None
    return value


def _sequence(value: Any, hint: Any, plain: Any) -> Any:
    value = _parsed(value, "[", hint)
    items = split_commas(value) if isinstance(value, str) else value
    if isinstance(items, (bool, int, float)):
        items = [items]
    if isinstance(items, (bytes, collections.abc.Mapping)) or not isinstance(items, collections.abc.Iterable):
        raise ValueError(spell(hint))
    items = list(items)
    inner = get_args(hint) or (Any,)
    if plain is tuple and inner[-1] is not Ellipsis and get_args(hint):
        if len(items) != len(inner):
            raise ValueError(spell(hint))
        return tuple(convert(item, member) for item, member in zip(items, inner, strict=True))
    return _SEQUENCES[plain]([convert(item, inner[0]) for item in items])


def _mapping(value: Any, hint: Any) -> dict[Any, Any]:
    value = _parsed(value, "{", hint)
    if not isinstance(value, collections.abc.Mapping):
        raise ValueError(spell(hint))
    keys, values = get_args(hint) or (Any, Any)
    return {convert(key, keys): convert(item, values) for key, item in value.items()}


def spell(hint: Any) -> str:
    """A type in words, to follow "must be"."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return spell(inner[0])
    if origin in (Union, types.UnionType):
        return " or ".join(spell(member) for member in inner)
    if origin is Literal:
        return f"one of {', '.join(repr(option) for option in inner)}"
    plain = origin or hint
    if plain in _SEQUENCES:
        kinds = ", ".join(spell(member) for member in inner if member is not Ellipsis)
        return f"a list ({kinds}; separated by commas, or JSON)" if kinds else "a list (separated by commas, or JSON)"
    if plain in _MAPPINGS:
        return "a JSON object"
    if plain is collections.abc.Callable:
        return "a function (from Python only)"
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false", Path: "a path"}
    if plain in words:
        return words[plain]
    if isinstance(plain, type) and issubclass(plain, enum.Enum):
        return f"one of {', '.join(repr(item.value) for item in plain)}"
    if plain is types.NoneType or plain is None:
        return "none"
    return "anything" if plain in (Any, object) else f"a {getattr(plain, '__name__', plain)} (from Python only)"
