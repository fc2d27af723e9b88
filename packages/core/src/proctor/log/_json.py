"""JSON as the format has it: compact, UTF-8, NaN and infinities bare, lone surrogates as escapes.

The fast road is pydantic's encoder and decoder. What it refuses (lone surrogates, bytes that are no text, circular
data) takes the slow road through the standard library, one value at a time.
"""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

__all__ = ["array_items", "decode", "encode", "fields", "plain", "validate", "visible"]

_M = TypeVar("_M", bound=BaseModel)
_DEEPEST = 200
# Any escape, so that an escaped backslash is passed over whole; pairs of surrogates first; the group is a lone one.
_ESCAPE = re.compile(rb"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})|\\.")
_NEXT = re.compile(r"\s*(\S)")
_REPLACED = "\ufffd".encode()  # what pydantic makes of a lone surrogate in a key, without an error


def _nothing(_value: object) -> None:
    """An object that has no JSON form is written as null, so that one odd value never costs a sample."""


def encode(value: Any, *, indent: int | None = None) -> bytes:
    """``value`` as JSON: fields of records that are ``None`` are left out, nulls inside free-form data stay.

    Never raises for any Python value: what has no JSON form becomes null.
    """
    try:
        raw = to_json(value, indent=indent, exclude_none=True, inf_nan_mode="constants", fallback=_nothing)
        # One byte is found many times faster than three, and faster as a number: bytes are first taken for one, which
        # fails with an exception that nobody sees.
        if 0xEF not in raw or _REPLACED not in raw:
            return raw
    except (ValueError, RecursionError):  # PydanticSerializationError is a ValueError
        pass
    separators = None if indent else (",", ":")
    return json.dumps(plain(value), separators=separators, indent=indent, ensure_ascii=True).encode("ascii")


def visible(raw: bytes) -> bytes:
    """The JSON text ``raw`` with the escapes of lone surrogates turned into text that shows them (``\\ud83d``).

    The peer reads such escapes in members of ``.eval`` logs, but refuses a ``.json`` log that has one.
    """
    return _ESCAPE.sub(_shown, raw) if b"\\ud" in raw else raw


def _shown(escape: re.Match[bytes]) -> bytes:
    return b"\\" + escape[0] if escape[1] else escape[0]


def decode(data: bytes | bytearray | memoryview) -> Any:
    """The value of a JSON text; lone surrogates in escapes, NaN, infinities and huge integers are taken as they are.

    Raises:
        ValueError: if ``data`` is not JSON.
    """
    raw = bytes(data) if isinstance(data, memoryview) else data
    try:
        return from_json(raw, allow_inf_nan=True)
    except ValueError:
        return _loads(raw)


def _loads(raw: bytes | bytearray) -> Any:
    try:
        return json.loads(raw)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def validate(model: type[_M], data: bytes) -> _M:
    """``data`` (JSON) as a record of class ``model``.

    Raises:
        ValueError: if it is not JSON or does not fit.
    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        if error.errors(include_url=False, include_context=False, include_input=False)[0]["type"] != "json_invalid":
            raise
        return model.model_validate(_loads(data))


def array_items(chunks: Iterable[bytes]) -> Iterator[Any]:
    """The items (objects or arrays) of a JSON array that comes in pieces, each as soon as it is whole.

    Raises:
        ValueError: if it is no array, or ends too early.
    """
    decoder, utf8 = json.JSONDecoder(), getincrementaldecoder("utf-8")("replace")
    text, begun = "", False
    for chunk in chunks:
        text += utf8.decode(chunk)
        place = 0
        while True:
            found = _NEXT.match(text, place)
            if found is None:
                break
            if not begun:
                if found[1] != "[":
                    raise ValueError("it is no JSON array")
                begun, place = True, found.end()
            elif found[1] == "]":
                return
            elif found[1] == ",":
                place = found.end()
            else:
                try:
                    item, place = decoder.raw_decode(text, found.start(1))
                except ValueError:
                    break  # the rest of the item is in the next piece
                yield item
        text = text[place:]
    raise ValueError("the JSON array ends too early")


def fields(record: BaseModel) -> dict[str, Any]:
    """The fields of ``record`` that are not ``None``, unknown ones included, one level deep (nothing is copied)."""
    found = {name: value for name, value in record.__dict__.items() if value is not None}
    extra = record.__pydantic_extra__
    if extra:
        found.update(extra)
    return found


def plain(value: Any, depth: int = 0) -> Any:
    """``value`` as data that the standard library's encoder takes; ``None`` for what has no JSON form."""
    if value is None or isinstance(value, (bool, str, int, float)):
        return value
    if depth > _DEEPEST:
        return None
    if isinstance(value, BaseModel):
        kept = {name: item for name, item in fields(value).items() if not _excluded(value, name)}
        return {name: plain(item, depth + 1) for name, item in kept.items()}
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    try:
        return json.loads(to_json(value, inf_nan_mode="constants"))
    except (ValueError, RecursionError):
        return None


def _excluded(record: BaseModel, name: str) -> bool:
    field = type(record).model_fields.get(name)
    return field is not None and bool(field.exclude)


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.decode("utf-8", "replace")
    return json.dumps(key) if isinstance(key, (bool, int, float)) else str(key)
