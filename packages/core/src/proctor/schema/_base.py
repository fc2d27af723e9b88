"""The base of every record that is written to a log."""

from __future__ import annotations

from functools import cache
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue

__all__ = ["JsonValue", "Record", "assembled"]


_M = TypeVar("_M", bound=BaseModel)

_new = object.__new__
_set_fields, _set_given, _set_extra, _set_private = (
    BaseModel.__dict__[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def assembled(model: type[_M], fields: dict[str, Any], *, extra: bool = True) -> _M:
    """An instance of ``model`` that takes over ``fields``: all that the class has, in its order, known to fit.

    For what each sample makes, where ``Record.trusted`` with its defaults costs too much: a smallest sample has twenty
    records. A function, since looking a method up in a model's class costs as much as the rest.

    Args:
        model: the class.
        fields: by name; nothing is validated or copied.
        extra: whether the class takes fields that it does not know, as a ``Record`` does.
    """
    made = _new(model)
    # All that pydantic keeps of an instance. By the slots' own setters: an attribute by its name costs twice that.
    _set_fields(made, fields)
    _set_given(made, set())
    _set_extra(made, {} if extra else None)
    _set_private(made, None)
    return made


@cache
def _defaults(record: type[BaseModel]) -> dict[str, Any]:
    return {
        name: None if field.is_required() or field.default_factory is not None else field.default
        for name, field in record.model_fields.items()
    }


class Record(BaseModel):
    """A log record: mutable, compared by value, tolerant of fields it does not know.

    Unknown fields are kept (``extra="allow"``), so a log written by a newer minor version survives being read and
    written again. NaN and infinities are written bare, as the peer's reader expects them.
    """

    model_config = ConfigDict(
        extra="allow",
        ser_json_inf_nan="constants",
        protected_namespaces=(),
        populate_by_name=True,
    )

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """A record of values that are known to fit: nothing is validated or copied (a tenth of the usual cost).

        For the engine's own records on hot paths. Fields left out hold their default; those whose default is made anew
        for each record (lists, dicts) must be given.
        """
        # In the order of the class, since a log is written in that order.
        return assembled(cls, _defaults(cls) | fields)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain Python data, fields that are ``None`` left out (nulls inside free-form data stay)."""
        return self.model_dump(exclude_none=True)
