"""Tools as a model sees them, and the calls it makes."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field

from proctor.schema._base import Record

__all__ = [
    "ToolCall",
    "ToolCallContent",
    "ToolCallError",
    "ToolChoice",
    "ToolFunction",
    "ToolInfo",
    "ToolParam",
    "ToolParams",
]

ToolErrorType: TypeAlias = Literal[
    "parsing",
    "timeout",
    "unicode_decode",
    "permission",
    "file_not_found",
    "is_a_directory",
    "limit",
    "approval",
    "cancelled",
    "sandbox_unavailable",
    "unknown",
    "output_limit",
]


class ToolCallContent(Record):
    """How a tool call should be shown to a person."""

    title: str | None = None
    format: Literal["text", "markdown"] = "text"
    content: str = ""


class ToolCall(Record):
    """One call of a tool, as the model asked for it."""

    id: str
    function: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    parse_error: str | None = None
    view: ToolCallContent | None = None
    type: Literal["function", "custom"] = "function"


class ToolCallError(Record):
    """Why a tool call failed, in the words that the model is shown."""

    type: ToolErrorType
    message: str


class ToolParam(Record):
    """A JSON Schema node (the subset that model providers accept); keywords not named here are kept as extras."""

    type: str | list[str] | None = None
    format: str | None = None
    description: str | None = None
    default: Any = None
    enum: list[Any] | None = None
    items: ToolParam | None = None
    properties: dict[str, ToolParam] | None = None
    additionalProperties: ToolParam | bool | None = None
    anyOf: list[ToolParam] | None = None
    required: list[str] | None = None


class ToolParams(Record):
    """The parameters of a tool: a JSON Schema object."""

    type: Literal["object"] = "object"
    properties: dict[str, ToolParam] = Field(default_factory=dict)
    required: list[str] = Field(default_factory=list)
    additionalProperties: bool = False


class ToolInfo(Record):
    """What a model is told about a tool."""

    name: str
    description: str
    parameters: ToolParams = Field(default_factory=ToolParams)
    options: dict[str, Any] | None = None


class ToolFunction(Record):
    """A tool choice that forces one function."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "any", "none"] | ToolFunction
