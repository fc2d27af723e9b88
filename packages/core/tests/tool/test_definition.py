"""What a tool says of itself, and what its author is told when it says too little."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.registry import registry_info
from proctor.tool import Tool, ToolDef, ToolParams, tool, tool_info, tool_with


@tool
def add(bonus: int = 0) -> Tool:
    async def execute(x: int, y: int = 1) -> int:
        """Add two numbers.

        Args:
            x: The first.
            y: The second.
        """
        return x + y + bonus

    return execute


def test_a_tool_is_described_by_its_function() -> None:
    info = tool_info(add())
    assert (info.name, info.description) == ("add", "Add two numbers.")
    assert info.parameters.model_dump(exclude_none=True) == {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "description": "The first."},
            "y": {"type": "integer", "description": "The second.", "default": 1},
        },
        "required": ["x"],
        "additionalProperties": False,
    }


def test_a_tool_remembers_how_it_was_made() -> None:
    info = registry_info(add(bonus=2))
    assert (info.kind, info.name, info.params) == ("tool", "add", {"bonus": 2})


@pytest.mark.anyio
async def test_tool_with_changes_a_copy() -> None:
    given = add(bonus=2)
    changed = tool_with(given, name="plus", description="Plus.", parameters={"x": "One."})
    info = tool_info(changed)
    assert (info.name, info.description, info.parameters.properties["x"].description) == ("plus", "Plus.", "One.")
    assert tool_info(given).name == "add"
    assert tool_info(given).parameters.properties["x"].description == "The first."
    assert await changed(1, 2) == 5
    assert registry_info(changed).params == {"bonus": 2}


def test_a_changed_tool_can_be_changed_again() -> None:
    twice = tool_with(tool_with(add(), name="a"), description="B.")
    assert (tool_info(twice).name, tool_info(twice).description) == ("a", "B.")


def test_any_async_function_becomes_a_tool() -> None:
    async def search(query: str) -> str:
        return query

    definition = ToolDef(search, "find", "Find things.", {"query": "What to find."})
    info = tool_info(definition.as_tool())
    assert (info.name, info.parameters.properties["query"].description) == ("find", "What to find.")


def test_a_tool_may_be_an_object() -> None:
    class Echo:
        """An echo."""

        async def __call__(self, text: str) -> str:
            """Say it again.

            Args:
                text: What to say.
            """
            return text

    assert tool_info(ToolDef(Echo(), name="echo")).description == "Say it again."


def test_a_type_may_stand_in_the_docstring_alone() -> None:
    async def old(x, names=()):  # type: ignore[no-untyped-def]
        """Old style.

        Args:
            x (int): A number.
            names (list[str], optional): Names.
        """

    properties = tool_info(ToolDef(old)).parameters.properties
    assert properties["x"].type == "integer"
    assert properties["names"].model_dump(exclude_none=True)["items"] == {"type": "string"}


def test_what_lacks_a_description_is_named() -> None:
    async def silent(x: int) -> str:
        return ""

    async def half(x: int, y: int) -> str:
        """Half.

        Args:
            x: Known.
        """
        return ""

    with pytest.raises(ValueError, match="'silent' has no description"):
        ToolDef(silent)
    with pytest.raises(ValueError, match="'half': no description of parameter 'y'"):
        ToolDef(half)
    with pytest.raises(ValueError, match="no parameter 'z'"):
        ToolDef(half, parameters={"z": "?"})


def test_a_tool_must_be_async() -> None:
    def blocking() -> str:
        """Blocks."""
        return ""

    with pytest.raises(TypeError, match="'blocking' is not async"):
        ToolDef(blocking)


def test_extra_keyword_arguments_are_no_parameters() -> None:
    async def loose(x: int, **more: Any) -> str:
        """Loose.

        Args:
            x: A number.
        """
        return ""

    assert list(tool_info(ToolDef(loose)).parameters.properties) == ["x"]


def test_parameters_may_be_given_whole() -> None:
    async def raw(**arguments: Any) -> str:
        return str(arguments)

    params = ToolParams(properties={"q": {"type": "string"}})  # type: ignore[dict-item]
    assert tool_info(ToolDef(raw, description="Raw.", parameters=params)).parameters == params
