"""Runs the tool calls of a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from proctor.concurrency import collect
from proctor.log import span
from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ModelOutput,
    ToolCall,
)
from proctor.tool._call import CallResult, run_call
from proctor.tool._conversation import ConversationTool
from proctor.tool._def import ToolDef, tool_defs
from proctor.tool._tool import Tool, ToolSource

__all__ = ["ExecuteToolsResult", "execute_tools"]


class ExecuteToolsResult(NamedTuple):
    """The messages that answer the calls, in their order, and the output of an agent that was handed over to."""

    messages: list[ChatMessage]
    output: ModelOutput | None = None


async def execute_tools(
    messages: Sequence[ChatMessage],
    tools: Sequence[Tool | ToolDef | ToolSource] | ToolSource,
    max_output: int | None = None,
) -> ExecuteToolsResult:
    """Run the tool calls of the last message, if it is an assistant's.

    Calls run in order; when all their tools were declared ``parallel=True`` they run at the same time. Each call gets
    one message that answers it, in the order of the calls.

    Args:
        messages: the conversation.
        tools: the tools that may be called.
        max_output: bytes of a tool's output that the model sees (16 KiB by default, 0: no limit); a tool's own wins.

    Raises:
        LimitExceededError: when a limit of the sample was exceeded in a tool.
        Exception: whatever a tool raised beside ``ToolError`` and the errors that the model is told of.
    """
    last = messages[-1] if messages else None
    if not isinstance(last, ChatMessageAssistant) or not last.tool_calls:
        return ExecuteToolsResult([], None)
    defs = {each.name: each for each in await tool_defs(tools)}
    calls = last.tool_calls
    if len(calls) > 1 and all(_parallel(defs.get(call.function)) for call in calls):
        results = await collect(*[_one((), call, defs.get(call.function), max_output) for call in calls])
    else:
        results = [await _one(messages, call, defs.get(call.function), max_output) for call in calls]
    found: list[ChatMessage] = []
    output = None
    for result in results:
        found.append(result.message)
        found.extend(result.messages)
        output = result.output or output
    return ExecuteToolsResult(found, output)


def _parallel(definition: ToolDef | None) -> bool:
    return definition is not None and definition.parallel is True and not _converses(definition)


def _converses(definition: ToolDef | None) -> bool:
    return definition is not None and isinstance(definition.tool, ConversationTool)


async def _one(
    messages: Sequence[ChatMessage], call: ToolCall, definition: ToolDef | None, max_output: int | None
) -> CallResult:
    agent = definition.tool if definition is not None else None
    if not isinstance(agent, ConversationTool):
        with span(call.function, type="tool"):
            return await run_call(call, definition, max_output)
    with span(agent.agent, type="handoff") as handoff:
        with span(call.function, type="tool"):
            result = await run_call(call, definition, max_output, agent=agent.agent, agent_span_id=handoff.id)
        if result.error is None:
            so_far = [*_before(messages, call), result.message]
            conversation = await agent.converse(so_far, result.arguments)
            return result._replace(messages=conversation.messages, output=conversation.output)
    return result


def _before(messages: Sequence[ChatMessage], call: ToolCall) -> list[ChatMessage]:
    """The conversation up to ``call``, whose message keeps this call alone: the agent must not answer the others."""
    last = messages[-1]
    alone = last.model_copy(update={"tool_calls": [call]})
    return [*messages[:-1], alone]
