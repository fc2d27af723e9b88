"""What most providers' protocols have in common: how tools are described, and how calls come back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from proctor.schema import ToolCall, ToolInfo

__all__ = ["parse_tool_call", "tool_schema"]

_QUOTED = 500  # characters of bad arguments that the model is shown again


def parse_tool_call(
    id: str, function: str, arguments: str | dict[str, Any] | None, tools: Sequence[ToolInfo] = ()
) -> ToolCall:
    """A tool call as a model wrote it; this never raises.

    Arguments that are no JSON object are a ``parse_error`` that goes back to the model, with one exception: a bare
    value for a tool of one parameter is that parameter (models write ``"ls"`` for ``{"command": "ls"}``).

    Args:
        id: the provider's name for the call.
        function: the tool's name.
        arguments: JSON text, an object that is parsed already, or None (or blank text) for a call without arguments.
        tools: what the model was offered.
    """
    if isinstance(arguments, dict):
        return ToolCall(id=id, function=function, arguments=arguments)
    text = arguments if arguments and arguments.strip() else "{}"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:  # the latter for thousands of brackets
        said = "nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        return _refused(id, function, f"the arguments of {function} are not JSON ({said}): {text[:_QUOTED]}")
    if isinstance(value, dict):
        return ToolCall(id=id, function=function, arguments=value)
    names = next((list(tool.parameters.properties) for tool in tools if tool.name == function), [])
    if len(names) == 1:
        return ToolCall(id=id, function=function, arguments={names[0]: value})
    return _refused(id, function, f"the arguments of {function} are not a JSON object: {text[:_QUOTED]}")


def _refused(id: str, function: str, problem: str) -> ToolCall:
    return ToolCall(id=id, function=function, arguments={}, parse_error=problem)


def tool_schema(tool: ToolInfo) -> dict[str, Any]:
    """A tool as ``name``, ``description`` and ``parameters`` (JSON Schema), as chat completions have it."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters.model_dump(exclude_none=True),
    }
