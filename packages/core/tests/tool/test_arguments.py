"""Arguments: checked against the schema, told to the model when wrong, converted to the declared types."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from scripted_tools import answers, call, run_calls

from proctor.log import Transcript, use_transcript
from proctor.schema import InfoEvent, ToolParams
from proctor.tool import ToolDef, json_schema
from proctor.tool._validate import problems

pytestmark = pytest.mark.anyio


class Color(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: float = 1.5


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Inner(BaseModel):
    a: int


async def receive(kind: Any, value: Any) -> tuple[list[Any], str | None]:
    """What a tool with a parameter of type ``kind`` gets for ``value``, and what the model is told."""
    got: list[Any] = []

    async def execute(x: Any) -> str:
        got.append(x)
        return "ok"

    execute.__annotations__["x"] = kind
    definition = ToolDef(execute, description="D.", parameters={"x": "X."})
    [answer] = answers(await run_calls([definition.as_tool()], call("execute", x=value)))
    return got, answer.error.message if answer.error is not None else None


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, 1, 1),
        (int, 1.0, 1),
        (float, 1, 1.0),
        (list[int], [1.0], [1]),
        (int | None, None, None),
        (Color, "red", Color.RED),
        (Color | None, "red", Color.RED),
        (Point, {"x": 1}, Point(1, 1.5)),
        (list[Point], [{"x": 1, "y": 2}], [Point(1, 2.0)]),
        (dict[str, Point], {"k": {"x": 1}}, {"k": Point(1)}),
        (Movie, {"title": "t"}, {"title": "t"}),
        (Inner, {"a": 1}, Inner(a=1)),
        (set[int], [1, 1, 2], {1, 2}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (datetime.date, "2024-01-02", datetime.date(2024, 1, 2)),
        (Any, {"a": [1]}, {"a": [1]}),
        (int | str, "a", "a"),
    ],
)
async def test_arguments_arrive_as_the_declared_types(kind: Any, value: Any, expected: Any) -> None:
    got, told = await receive(kind, value)
    assert told is None
    assert got == [expected]
    assert type(got[0]) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (int, "1", "x: expected an integer, got '1'"),
        (int, 1.5, "x: expected an integer, got 1.5"),
        (int, True, "x: expected an integer, got True"),
        (float, "1.5", "x: expected a number"),
        (str, 1, "x: expected a string"),
        (bool, "true", "x: expected a boolean"),
        (list[int], "[1]", "x: expected an array"),
        (list[int], ["1"], "x[0]: expected an integer"),
        (int | None, "null", "x: expected an integer or null"),
        (Color, "RED", "x: 'RED' is not one of 'red'"),
        (Literal["a", "b"], "c", "'c' is not one of 'a', 'b'"),
        (Point, {}, "x.x: required, but missing"),
        (Point, {"x": 1, "z": 1}, "x.z: no such parameter (known: x, y)"),
        (dict[str, int], {"k": "v"}, "x.k: expected an integer"),
        (datetime.date, "soon", "x: "),
        (tuple[int, str], [1], "x.1: "),
    ],
)
async def test_the_model_is_told_what_is_wrong_and_where(kind: Any, value: Any, words: str) -> None:
    got, told = await receive(kind, value)
    assert got == []
    assert told is not None and words in told


async def test_missing_and_unknown_arguments_are_all_named() -> None:
    async def execute(a: int, b: int = 2) -> str:
        return "ok"

    tool = ToolDef(execute, description="D.", parameters={"a": "A.", "b": "B."}).as_tool()
    [answer] = answers(await run_calls([tool], call("execute", c=1)))
    assert answer.error is not None
    assert answer.error.type == "parsing"
    assert "a: required, but missing" in answer.error.message
    assert "c: no such parameter (known: a, b)" in answer.error.message


async def test_reading_a_whole_number_as_an_integer_is_noted() -> None:
    with use_transcript(Transcript()) as transcript:
        await receive(int, 2.0)
    [note] = [event for event in transcript.events if isinstance(event, InfoEvent)]
    assert note.data["read_as_integers"] == {"x": 2}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
KINDS = [int, float, str, bool, list[int], dict[str, int], int | None, Literal["a", 1], Point, Inner, tuple[int, str]]


@given(value=json_values, kind=st.sampled_from(KINDS))
def test_anything_that_a_model_may_send_is_judged_without_failing(value: Any, kind: Any) -> None:
    params = ToolParams(properties={"x": json_schema(kind)}, required=["x"])
    found = problems({"x": value}, params)
    assert all(isinstance(problem, str) for problem in found)
    if kind in (str, bool):
        assert bool(found) != isinstance(value, kind)


@given(st.integers())
def test_every_integer_is_an_integer_and_a_number(value: int) -> None:
    for kind in (int, float, int | None):
        assert problems({"x": value}, ToolParams(properties={"x": json_schema(kind)})) == []
