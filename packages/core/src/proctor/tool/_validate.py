"""Checks the arguments of a tool call against the tool's parameters, in words that let a model mend them."""

from __future__ import annotations

import math
from typing import Any

from proctor.schema import ToolParam, ToolParams

__all__ = ["problems"]

_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def problems(arguments: dict[str, Any], params: ToolParams) -> list[str]:
    """What is wrong with ``arguments``, one sentence each; empty when nothing is."""
    found: list[str] = []
    _properties(arguments, params.properties, params.required, params.additionalProperties, "", found)
    return found


def _check(value: Any, schema: ToolParam, path: str, found: list[str]) -> None:
    if schema.anyOf is not None:
        attempts = [_problems_of(value, option, path) for option in schema.anyOf]
        if all(attempts):
            options = " or ".join(_expected(option) for option in schema.anyOf)
            found.append(f"{path}: expected {options}, got {_show(value)}")
        return
    if schema.type is not None:
        types = schema.type if isinstance(schema.type, list) else [schema.type]
        if not any(_is(value, kind) for kind in types):
            found.append(f"{path}: expected {_expected(schema)}, got {_show(value)}")
            return
    if schema.enum is not None and not any(_same(value, allowed) for allowed in schema.enum):
        found.append(f"{path}: {_show(value)} is not one of {', '.join(_show(allowed) for allowed in schema.enum)}")
        return
    if isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            _check(item, schema.items, f"{path}[{index}]", found)
    if isinstance(value, dict) and (schema.properties is not None or schema.additionalProperties is not None):
        extra = True if schema.additionalProperties is None else schema.additionalProperties
        _properties(value, schema.properties or {}, schema.required or [], extra, path, found)


def _problems_of(value: Any, schema: ToolParam, path: str) -> list[str]:
    found: list[str] = []
    _check(value, schema, path, found)
    return found


def _properties(
    value: dict[str, Any],
    properties: dict[str, ToolParam],
    required: list[str],
    additional: ToolParam | bool,
    path: str,
    found: list[str],
) -> None:
    found.extend(f"{_join(path, name)}: required, but missing" for name in required if name not in value)
    for name, item in value.items():
        if name in properties:
            _check(item, properties[name], _join(path, name), found)
        elif additional is False:
            known = ", ".join(properties) or "none"
            found.append(f"{_join(path, name)}: no such parameter (known: {known})")
        elif isinstance(additional, ToolParam):
            _check(item, additional, _join(path, name), found)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is(value: Any, kind: str) -> bool:
    if kind == "integer":  # JSON has one kind of number: 2.0 is an integer
        whole = isinstance(value, float) and math.isfinite(value) and value.is_integer()
        return (isinstance(value, int) and not isinstance(value, bool)) or whole
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    expected = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}.get(kind)
    return expected is None or isinstance(value, expected)


def _same(value: Any, allowed: Any) -> bool:
    return bool(value == allowed) and isinstance(value, bool) == isinstance(allowed, bool)


def _expected(schema: ToolParam) -> str:
    if schema.enum is not None:
        return "one of " + ", ".join(_show(allowed) for allowed in schema.enum)
    if schema.anyOf is not None:
        return " or ".join(_expected(option) for option in schema.anyOf)
    types = schema.type if isinstance(schema.type, list) else [schema.type or "any"]
    return " or ".join(_NAMES.get(kind, "any value") for kind in types)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
