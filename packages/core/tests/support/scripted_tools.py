"""Tools and messages for tests of what calls tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from proctor.schema import ChatMessage, ChatMessageAssistant, ChatMessageTool, ChatMessageUser, ToolCall
from proctor.tool import ExecuteToolsResult, Tool, ToolDef, execute_tools

__all__ = ["answers", "call", "calling", "one_tool", "run_calls"]


def call(function: str, id: str = "1", **arguments: Any) -> ToolCall:
    """A call of ``function``."""
    return ToolCall(id=id, function=function, arguments=arguments)


def calling(*calls: ToolCall) -> list[ChatMessage]:
    """A conversation whose last message makes ``calls``."""
    return [ChatMessageUser(content="q"), ChatMessageAssistant(content="a", tool_calls=list(calls))]


def one_tool(body: Callable[[str], Awaitable[Any]], name: str = "t", **settings: Any) -> Tool:
    """A tool with one parameter ``x``, which ``body`` gets."""

    async def execute(x: str = "") -> Any:
        """Do it.

        Args:
            x: Anything.
        """
        return await body(x)

    return ToolDef(execute, name, **settings).as_tool()


async def run_calls(tools: list[Tool], *calls: ToolCall, max_output: int | None = None) -> ExecuteToolsResult:
    """Run ``calls``."""
    return await execute_tools(calling(*calls), tools, max_output)


def answers(result: ExecuteToolsResult) -> list[ChatMessageTool]:
    """The answers of the tools."""
    return [message for message in result.messages if isinstance(message, ChatMessageTool)]
