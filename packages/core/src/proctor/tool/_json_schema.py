"""JSON Schema from Python types: the subset that model providers accept."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import types
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from proctor.schema import ToolParam

__all__ = ["json_schema", "json_value"]

_PLAIN: dict[Any, str] = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_FORMATS: dict[Any, str] = {datetime.datetime: "date-time", datetime.date: "date", datetime.time: "time"}
_ARRAYS = (list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection,
           collections.abc.Set, collections.abc.MutableSequence)  # fmt: skip
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_UNIONS = (Union, types.UnionType)

Seen: TypeAlias = tuple[Any, ...]


def json_schema(t: Any) -> ToolParam:
    """The JSON Schema of values of type ``t``.

    Understood are plain types, lists, sets, tuples, dictionaries, unions, ``Literal``, enumerations, dates and times,
    dataclasses, typed dictionaries and pydantic models, in any nesting. A type that has no JSON form, and a class
    inside itself, is left open (``{}`` and ``{"type": "object"}``).
    """
    return _schema(t, ())


def _schema(t: Any, seen: Seen) -> ToolParam:
    if hasattr(t, "__value__"):  # an alias made with ``type`` (Python 3.12)
        return _schema(t.__value__, seen)
    origin = get_origin(t)
    if origin is Annotated:
        return _annotated(t, seen)
    if origin in (Required, NotRequired):
        return _schema(get_args(t)[0], seen)
    if origin in _UNIONS:
        return ToolParam(anyOf=[_schema(arg, seen) for arg in get_args(t)])
    if origin is Literal:
        return _enum(list(get_args(t)))
    if origin is not None:
        return _generic(origin, get_args(t), seen)
    if isinstance(t, type):
        return _class(t, seen)
    return ToolParam()


def _annotated(t: Any, seen: Seen) -> ToolParam:
    schema = _schema(get_args(t)[0], seen)
    for note in t.__metadata__:
        if isinstance(note, FieldInfo) and note.description:
            schema.description = note.description
    return schema


def _generic(origin: Any, args: tuple[Any, ...], seen: Seen) -> ToolParam:
    if origin is tuple:
        return _tuple(args, seen)
    if origin in _ARRAYS:
        return ToolParam(type="array", items=_schema(args[0], seen) if args else ToolParam())
    if origin in _OBJECTS:
        value = _schema(args[1], seen) if len(args) == 2 else ToolParam()
        return ToolParam(type="object", additionalProperties=value)
    return _class(origin, seen) if isinstance(origin, type) else ToolParam()


def _tuple(args: tuple[Any, ...], seen: Seen) -> ToolParam:
    kinds = [_schema(arg, seen) for arg in args if arg is not Ellipsis]
    distinct = [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]
    items = ToolParam() if not distinct else distinct[0] if len(distinct) == 1 else ToolParam(anyOf=distinct)
    return ToolParam(type="array", items=items)


def _class(t: type, seen: Seen) -> ToolParam:
    if t in _PLAIN:
        return ToolParam(type=_PLAIN[t])
    if t in _FORMATS:
        return ToolParam(type="string", format=_FORMATS[t])
    if t is tuple or t in _ARRAYS:
        return ToolParam(type="array", items=ToolParam())
    if t in _OBJECTS:
        return ToolParam(type="object", additionalProperties=ToolParam())
    if t in seen:  # a class inside itself has no finite form
        return ToolParam(type="object")
    if issubclass(t, enum.Enum):
        return _enum([member.value for member in t])
    if dataclasses.is_dataclass(t):
        return _dataclass(t, (*seen, t))
    if hasattr(t, "__required_keys__"):  # a typed dictionary, from typing or typing_extensions
        return _typed_dict(t, (*seen, t))
    if issubclass(t, BaseModel):
        return _model(t, (*seen, t))
    for base in (bool, int, float, str):
        if issubclass(t, base):
            return ToolParam(type=_PLAIN[base])
    return ToolParam()


def _enum(values: list[Any]) -> ToolParam:
    kinds = {_PLAIN.get(type(value)) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return ToolParam(type=kind, enum=values)


def _object(properties: dict[str, ToolParam], required: list[str]) -> ToolParam:
    return ToolParam(type="object", properties=properties, required=required, additionalProperties=False)


def _dataclass(t: Any, seen: Seen) -> ToolParam:
    hints = get_type_hints(t, include_extras=True)
    properties: dict[str, ToolParam] = {}
    required: list[str] = []
    for each in dataclasses.fields(t):
        if not each.init:
            continue
        properties[each.name] = schema = _schema(hints[each.name], seen)
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
            required.append(each.name)
        elif each.default is not dataclasses.MISSING:
            schema.default = json_value(each.default)
    return _object(properties, required)


def _typed_dict(t: Any, seen: Seen) -> ToolParam:
    hints = get_type_hints(t, include_extras=True)
    # Decided from the hints: under postponed annotations, the class itself doesn't see NotRequired.
    required = [name for name, hint in hints.items() if _is_required(hint, name in t.__required_keys__)]
    return _object({name: _schema(hint, seen) for name, hint in hints.items()}, required)


def _is_required(hint: Any, default: bool) -> bool:
    origin = get_origin(hint)
    return default if origin not in (Required, NotRequired) else origin is Required


def _model(t: type[BaseModel], seen: Seen) -> ToolParam:
    properties: dict[str, ToolParam] = {}
    required: list[str] = []
    for name, each in t.model_fields.items():
        key = each.validation_alias if isinstance(each.validation_alias, str) else each.alias or name
        properties[key] = schema = _schema(each.annotation, seen)
        if each.description:
            schema.description = each.description
        if each.is_required():
            required.append(key)
        elif each.default_factory is None:
            schema.default = json_value(each.default)
    return _object(properties, required)


def json_value(value: Any) -> Any:
    """``value`` as JSON data, or ``None`` when it has no such form."""
    if isinstance(value, enum.Enum):
        return json_value(value.value)
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return json_value(dataclasses.asdict(value))
    return None
