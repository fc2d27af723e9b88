"""Arguments and components as a log shows them: data that is the same in every process, and has no secret in it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel

from proctor.registry._registry import is_registered, registry_info
from proctor.schema import Record, redact

__all__ = ["loggable"]

_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")
# The module that a task file becomes is named after its place, which differs from machine to machine.
_FILE_MODULE = re.compile(r"\b(?:proctor_task|_proctor_plugin)_(\w+)_[0-9a-f]{8}\b")


def loggable(value: Any, *, keep_secrets: bool = False) -> Any:
    """``value`` as JSON data, equal for equal values in every process.

    Components become ``{type, name, params}``. Dataclasses and pydantic models become ``{type, fields}`` with the class
    as type, since two classes may have the same fields; the log's own records are their fields. What has no text but
    its address becomes the name of its class.

    Args:
        value: an argument, or a mapping of them.
        keep_secrets: leave in what is a secret by its name, for a comparison that nobody reads.
    """
    data = _data(value, ())
    return data if keep_secrets else redact(data)


def _data(value: Any, inside: tuple[int, ...]) -> Any:
    """``inside`` is what ``value`` is a part of, by ``id``: data may hold itself."""
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if id(value) in inside:
        return "..."
    part = partial(_data, inside=(*inside, id(value)))
    if isinstance(value, type):
        return _class_name(value)
    if is_registered(value):
        info = registry_info(value)
        return {"type": info.kind, "name": info.name, "params": part(info.params)}
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(_data(key, ())): part(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [part(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(part, value), key=partial(json.dumps, sort_keys=True, default=str))
    if isinstance(value, BaseModel):
        fields = part(_dumped(value))
        return fields if isinstance(value, Record) else {"type": _class_name(type(value)), "fields": fields}
    if dataclasses.is_dataclass(value):
        shown: Iterable[str] = (field.name for field in dataclasses.fields(value) if field.repr)
        return {"type": _class_name(type(value)), "fields": {name: part(getattr(value, name, None)) for name in shown}}
    return getattr(value, "__name__", None) or _text(value)


def _dumped(model: BaseModel) -> dict[str, Any]:
    try:
        return model.model_dump(mode="json", exclude_none=True)
    except ValueError:  # pydantic's serialization errors: a field that has no JSON form
        return model.model_dump(exclude_none=True)


def _class_name(cls: type) -> str:
    name = cls.__qualname__ if cls.__module__ in ("builtins", "__main__") else f"{cls.__module__}.{cls.__qualname__}"
    return _FILE_MODULE.sub(r"\1", name)


def _text(value: object) -> str:
    if type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__:
        return _class_name(type(value))
    return _FILE_MODULE.sub(r"\1", _ADDRESS.sub("", str(value)))
