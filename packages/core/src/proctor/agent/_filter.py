"""Message filters: what one agent sees of another's conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentReasoning,
    ContentText,
    ContentToolUse,
    ToolCall,
    content_parts,
)

__all__ = ["MessageFilter", "content_only", "last_message", "remove_tools", "trim_messages"]

MessageFilter: TypeAlias = Callable[[list[ChatMessage]], Awaitable[list[ChatMessage]]]
"""Takes a conversation and returns the part of it, or the form of it, that another is to see."""


async def content_only(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The conversation as content alone: an agent with other tools, or another model, can read it.

    System messages and reasoning are left out, tool calls become text of the assistant, and tool answers user messages.
    """
    filtered: list[ChatMessage] = []
    for message in messages:
        if isinstance(message, ChatMessageAssistant):
            content = _without_reasoning(message.content)
            for call in message.tool_calls or []:
                content = [*content_parts(content), ContentText(text=_as_text(call))]
            filtered.append(message.model_copy(update={"content": content, "tool_calls": None}))
        elif isinstance(message, ChatMessageTool):
            said = message.error.message if message.error is not None and not message.content else message.content
            filtered.append(ChatMessageUser(id=message.id, content=said))
        elif not isinstance(message, ChatMessageSystem):
            filtered.append(message)
    return filtered


def _without_reasoning(content: str | list[Content]) -> str | list[Content]:
    if isinstance(content, str):
        return content
    kept = [part for part in content if not isinstance(part, (ContentReasoning, ContentToolUse))]
    # What a provider keeps inside its content is meant for that provider alone.
    return [part.model_copy(update={"internal": None}) if getattr(part, "internal", None) else part for part in kept]


def _as_text(call: ToolCall) -> str:
    return f"{call.function}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"


async def remove_tools(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The conversation without tool calls and their answers."""
    return [
        message.model_copy(update={"tool_calls": None}) if isinstance(message, ChatMessageAssistant) else message
        for message in messages
        if not isinstance(message, ChatMessageTool)
    ]


async def last_message(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The last message alone."""
    return messages[-1:]


_KEPT = 0.7


async def trim_messages(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The conversation without its oldest turns, for a model whose context is full.

    System messages and the sample's input stay, and the latest 70% of the rest. Answers of tools whose call was cut off
    go too.
    """
    head = _head(messages)
    rest = list(messages[len(head) :])
    rest = rest[len(rest) - int(len(rest) * _KEPT) :]
    called = {
        call.id for message in rest if isinstance(message, ChatMessageAssistant) for call in message.tool_calls or []
    }
    return [*head, *(each for each in rest if not isinstance(each, ChatMessageTool) or each.tool_call_id in called)]


def _head(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    for index, message in enumerate(messages):
        if not isinstance(message, ChatMessageSystem) and message.source != "input":
            first_user = index == 0 or all(isinstance(each, ChatMessageSystem) for each in messages[:index])
            return messages[: index + 1] if first_user and isinstance(message, ChatMessageUser) else messages[:index]
    return messages
