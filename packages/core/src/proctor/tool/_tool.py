"""What a tool is, and how a function becomes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeAlias, overload, runtime_checkable

from proctor.registry import component
from proctor.schema import (
    Content,
    ContentAudio,
    ContentData,
    ContentDocument,
    ContentImage,
    ContentText,
    ContentVideo,
    Record,
    ToolCall,
    ToolCallContent,
)

__all__ = ["Tool", "ToolCallView", "ToolCallViewer", "ToolError", "ToolResult", "ToolSource", "tool"]

P = ParamSpec("P")

ToolResult: TypeAlias = (
    str
    | int
    | float
    | bool
    | ContentText
    | ContentImage
    | ContentAudio
    | ContentVideo
    | ContentDocument
    | ContentData
    | list[Content]
)
"""What a tool may return: text, a number, a boolean, or content; of anything else the model sees ``str(it)``."""


class ToolError(Exception):
    """A failure that the model is told of, so that it can try something else. Any other exception ends the sample."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@runtime_checkable
class Tool(Protocol):
    """An async function that a model may call. Its parameters need type hints and descriptions in the docstring."""

    async def __call__(self, *args: Any, **kwargs: Any) -> ToolResult:
        """Do what the docstring says.

        Raises:
            ToolError: to tell the model that it failed, and why.
        """
        ...


@runtime_checkable
class ToolSource(Protocol):
    """Gives tools that are known only while the sample runs (those of an MCP server, for example)."""

    async def tools(self) -> Sequence[Tool]:
        """The tools, asked for anew before each generate call."""
        ...


class ToolCallView(Record):
    """How a call is shown to a person: what led to it, and the call itself."""

    context: ToolCallContent | None = None
    call: ToolCallContent | None = None


ToolCallViewer: TypeAlias = Callable[[ToolCall], ToolCallView]
"""Makes the view of a call."""


@overload
def tool(func: Callable[P, Tool]) -> Callable[P, Tool]: ...


@overload
def tool(
    func: None = None,
    *,
    name: str | None = None,
    viewer: ToolCallViewer | None = None,
    parallel: bool | None = None,
    max_output: int | None = None,
) -> Callable[[Callable[P, Tool]], Callable[P, Tool]]: ...


def tool(
    func: Callable[P, Tool] | None = None,
    *,
    name: str | None = None,
    viewer: ToolCallViewer | None = None,
    parallel: bool | None = None,
    max_output: int | None = None,
) -> Callable[P, Tool] | Callable[[Callable[P, Tool]], Callable[P, Tool]]:
    """Register a function that makes a tool.

    Args:
        func: the function, when the decorator is written without parentheses.
        name: what the model calls the tool; by default the function's name.
        viewer: how calls are shown to a person.
        parallel: ``True``: calls of one message may run at the same time (when all their tools say so). ``False``: the
            model is not even offered to make several calls at once. Unsaid: it may make them, and they run in order.
        max_output: bytes of output that the model sees at most (0: no limit), for this tool alone.
    """
    attribs = {"viewer": viewer, "parallel": parallel, "max_output": max_output}
    if func is not None:
        return component("tool", func, name, attribs)
    return lambda factory: component("tool", factory, name, attribs)
