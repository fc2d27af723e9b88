"""JSON Schema from Python types."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict, Union

import pytest
from pydantic import BaseModel, Field

from proctor.tool import json_schema


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: float = 1.5
    tags: list[str] = field(default_factory=list)


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Inner(BaseModel):
    a: int = Field(description="inner a")
    other: Inner | None = None


class Outer(BaseModel):
    inner: Inner
    color: Color = Color.RED


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (type(None), {"type": "null"}),
        (Any, {}),
        (list, {"type": "array", "items": {}}),
        (list[list[int]], {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
        (set[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, str], {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}),
        (dict, {"type": "object", "additionalProperties": {}}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045  # the old form is read too
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007  # likewise
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (Annotated[int, Field(description="d")], {"type": "integer", "description": "d"}),
        (complex, {}),
    ],
)
def test_types_have_the_schema_that_models_know(kind: Any, schema: dict[str, Any]) -> None:
    assert json_schema(kind).model_dump(exclude_none=True) == schema


def test_a_dataclass_is_an_object_whose_fields_with_defaults_are_optional() -> None:
    assert json_schema(Point).model_dump(exclude_none=True) == {
        "type": "object",
        "properties": {
            "x": {"type": "integer"},
            "y": {"type": "number", "default": 1.5},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["x"],
        "additionalProperties": False,
    }


def test_a_typed_dictionary_says_which_keys_are_required() -> None:
    schema = json_schema(Movie)
    assert schema.required == ["title"]
    assert schema.properties is not None
    assert list(schema.properties) == ["title", "year"]


def test_models_nest_and_a_model_inside_itself_is_left_open() -> None:
    schema = json_schema(Outer).model_dump(exclude_none=True)
    assert schema["properties"]["color"] == {"type": "string", "enum": ["red", "blue"], "default": "red"}
    inner = schema["properties"]["inner"]
    assert inner["properties"]["a"] == {"type": "integer", "description": "inner a"}
    assert inner["properties"]["other"] == {"anyOf": [{"type": "object"}, {"type": "null"}]}
