"""Tool descriptions and calls, as providers share them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.model import parse_tool_call, retry_after, tool_schema
from proctor.schema import ToolInfo, ToolParam, ToolParams

BASH = ToolInfo(
    name="bash",
    description="Run it.",
    parameters=ToolParams(properties={"command": ToolParam(type="string")}, required=["command"]),
)
ADD = ToolInfo(
    name="add",
    description="Add.",
    parameters=ToolParams(properties={"a": ToolParam(type="integer"), "b": ToolParam(type="integer")}),
)


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"command": "ls"}', {"command": "ls"}),
        ({"command": "ls"}, {"command": "ls"}),
        ('"ls"', {"command": "ls"}),
        ("3", {"command": 3}),
        ("", {}),
        (" \n", {}),
        (None, {}),
        ("{}", {}),
    ],
)
def test_arguments_are_read(arguments: Any, read: dict[str, Any]) -> None:
    call = parse_tool_call("c1", "bash", arguments, [ADD, BASH])

    assert (call.id, call.function, call.arguments, call.parse_error) == ("c1", "bash", read, None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"a": 1', "the arguments of add are not JSON"),
        ("ls -la", "not JSON"),
        ("[1, 2]", "the arguments of add are not a JSON object: [1, 2]"),
        ("null", "not a JSON object"),
        ("[" * 100_000, "not JSON"),
        ("x" * 100_000, "x" * 500),
    ],
)
def test_what_can_t_be_read_goes_back_to_the_model(arguments: str, said: str) -> None:
    call = parse_tool_call("c1", "add", arguments, [ADD, BASH])

    assert call.arguments == {}
    assert said in (call.parse_error or "")
    assert len(call.parse_error or "") < 700


def test_a_bare_value_for_a_tool_that_nobody_knows_is_an_error() -> None:
    assert parse_tool_call("c1", "bash", '"ls"').parse_error


@given(st.text())
def test_any_text_makes_a_call(text: str) -> None:
    assert isinstance(parse_tool_call("c1", "bash", text, [BASH]).arguments, dict)


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_any_object_comes_back(arguments: dict[str, Any]) -> None:
    assert parse_tool_call("c1", "bash", json.dumps(arguments), [BASH]).arguments == arguments


def test_a_tool_is_described_without_what_was_not_said() -> None:
    assert tool_schema(BASH) == {
        "name": "bash",
        "description": "Run it.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
            "additionalProperties": False,
        },
    }


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Sat, 29 Nov 2025 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sat, 29 Nov 2025 12:00:30"}, 30.0),
        ({"retry-after": "Sat, 29 Nov 2025 11:00:00 GMT"}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_how_long_a_refusal_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    noon = 1_764_417_600.0  # 2025-11-29 12:00:00 UTC

    assert retry_after(headers, now=noon) == seconds


@given(st.text())
def test_no_text_of_a_hint_is_an_error(text: str) -> None:
    seconds = retry_after({"retry-after": text})

    assert seconds is None or seconds >= 0
