"""What most providers' protocols have in common: tools, the calls of them, and how long a refusal asks to wait."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from proctor.schema import ToolCall, ToolInfo

__all__ = ["parse_tool_call", "retry_after", "tool_schema"]

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


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that a response asks to wait, for ``Retry.after``; None when it says nothing that can be read.

    By ``retry-after-ms``, or ``retry-after`` in seconds or as an HTTP date (RFC 9110, section 10.2.3).

    Args:
        headers: the response's headers; any mapping that finds lower-case names.
        now: the time, in seconds since the epoch, that a date is compared with.
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after")
    seconds = _seconds(header)
    if seconds is not None or not header:
        return seconds
    try:
        date = parsedate_to_datetime(header)
        if date.tzinfo is None:  # HTTP dates are in GMT, said or not
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - (time.time() if now is None else now))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
