"""A tool's description and parameters, read from its signature, type hints and docstring."""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from proctor.schema import ToolParam, ToolParams
from proctor.tool._docstring import DocumentedParam, parse_docstring
from proctor.tool._json_schema import json_schema, json_value

__all__ = ["ToolSignature", "set_tool_signature", "tool_signature", "underlying"]

_ATTRIBUTE = "__proctor_tool_signature__"
_DOCUMENTED: dict[str, Any] = {
    "str": str, "string": str, "int": int, "integer": int, "float": float, "number": float, "bool": bool,
    "boolean": bool, "list": list, "array": list, "dict": dict, "object": dict,
}  # fmt: skip
_DOCUMENTED |= {
    "list[str]": list[str],
    "list[int]": list[int],
    "list[float]": list[float],
    "list[bool]": list[bool],
    "list[dict]": list[dict[str, Any]],
}
_AS_THEY_ARE = (str, bool, dict, list, Any, inspect.Parameter.empty)


@dataclass(slots=True)
class ToolSignature:
    """What a function says of itself: its description, its parameters and the types to convert arguments to."""

    description: str
    parameters: ToolParams
    types: Mapping[str, Any]
    undocumented: list[str] = field(default_factory=list)
    adapters: dict[str, TypeAdapter[Any] | None] = field(default_factory=dict)

    def convert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``arguments`` (already valid) as the types that the function declares.

        Raises:
            ValueError: if one can't be converted (a date that is none, a model's own validator).
        """
        return {name: self._convert(name, value) for name, value in arguments.items()}

    def _convert(self, name: str, value: Any) -> Any:
        wanted = self.types.get(name, Any)
        if wanted in _AS_THEY_ARE:
            return value
        if wanted is int:
            return int(value)
        if wanted is float:
            return float(value)
        adapter = self._adapter(name, wanted)
        if adapter is None:
            return value
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            reasons = "; ".join(
                ".".join([name, *map(str, each["loc"])]) + f": {each['msg']}" for each in error.errors()
            )
            raise ValueError(reasons) from None

    def _adapter(self, name: str, wanted: Any) -> TypeAdapter[Any] | None:
        if name not in self.adapters:
            try:
                self.adapters[name] = TypeAdapter(wanted)
            except (PydanticSchemaGenerationError, PydanticUserError):
                self.adapters[name] = None  # a type without a JSON form: its author gets what the model sent
        return self.adapters[name]


def underlying(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The function (or object) inside partials and wrappers."""
    while isinstance(tool, functools.partial):
        tool = tool.func
    return tool


def tool_signature(tool: Callable[..., Any]) -> ToolSignature:
    """The signature of ``tool``, read once and kept with it."""
    target = underlying(tool)
    known = getattr(target, _ATTRIBUTE, None)
    if isinstance(known, ToolSignature):
        return known
    made = _read(target)
    with contextlib.suppress(AttributeError):  # a bound method or slotted object can't keep it
        setattr(target, _ATTRIBUTE, made)
    return made


def set_tool_signature(tool: Callable[..., Any], signature: ToolSignature) -> None:
    """Say what the signature of ``tool`` is, for a function that takes arguments it doesn't name."""
    setattr(underlying(tool), _ATTRIBUTE, signature)


def _read(target: Callable[..., Any]) -> ToolSignature:
    function: Any = target if inspect.isroutine(target) else type(target).__call__
    doc = parse_docstring(function.__doc__ or (None if inspect.isroutine(target) else type(target).__doc__))
    hints = _hints(function)
    properties: dict[str, ToolParam] = {}
    required: list[str] = []
    types: dict[str, Any] = {}
    undocumented: list[str] = []
    for name, parameter in inspect.signature(target).parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        said = doc.params.get(name, DocumentedParam())
        types[name] = hint = hints.get(name, _documented_type(said.type))
        properties[name] = param = json_schema(hint)
        if said.description:
            param.description = said.description
        if not param.description:
            undocumented.append(name)
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
        else:
            param.default = json_value(parameter.default)
    return ToolSignature(doc.description, ToolParams(properties=properties, required=required), types, undocumented)


def _hints(function: Any) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        # A hint that only the type checker can see, or a class made inside a function: resolve what can be.
        return _partial_hints(function)


def _partial_hints(function: Any) -> dict[str, Any]:
    names = dict(vars(typing))
    names.update(getattr(function, "__globals__", {}))
    with contextlib.suppress(ValueError):
        names.update(inspect.getclosurevars(function).nonlocals)
    hints: dict[str, Any] = {}
    for name, hint in getattr(function, "__annotations__", {}).items():
        if not isinstance(hint, str):
            hints[name] = hint
            continue
        with contextlib.suppress(Exception):  # whatever an annotation that can't be evaluated raises
            hints[name] = eval(hint, names)
    return hints


def _documented_type(text: str | None) -> Any:
    if text is None:
        return Any
    return _DOCUMENTED.get(text.removesuffix(", optional").removesuffix(",optional").strip(), Any)
