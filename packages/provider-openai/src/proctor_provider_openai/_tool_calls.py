"""Tool calls in replies."""

from __future__ import annotations

import json

from proctor.schema import ToolCall, ToolInfo

__all__ = ["tool_call"]


def tool_call(id: str, function: str, arguments: str | dict[str, object] | None, tools: list[ToolInfo]) -> ToolCall:
    """A call as the model wrote it.

    Arguments that are no JSON object are a ``parse_error`` that goes back to the model, with one exception: a bare
    value for a tool of one parameter is that parameter (models write ``"ls"`` for ``{"command": "ls"}``).
    """
    if isinstance(arguments, dict):
        return ToolCall(id=id, function=function, arguments=arguments)
    text = arguments or "{}"
    error: str | None = None
    value: object = None
    try:
        value = json.loads(text)
    except ValueError as problem:
        error = f"the arguments of {function} are not JSON ({problem}): {text[:500]}"
    if isinstance(value, dict):
        return ToolCall(id=id, function=function, arguments=value)
    if error is None:
        names = next((list(tool.parameters.properties) for tool in tools if tool.name == function), [])
        if len(names) == 1:
            return ToolCall(id=id, function=function, arguments={names[0]: value})
        error = f"the arguments of {function} are not a JSON object: {text[:500]}"
    return ToolCall(id=id, function=function, arguments={}, parse_error=error)
