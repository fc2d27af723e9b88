"""What is sent: a prompt or a conversation, in the form that a provider takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageBase,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentReasoning,
    GenerateConfig,
    ToolInfo,
    content_parts,
    quick_id,
)

__all__ = ["collapse", "conversation", "describe_tools_with", "tool_infos"]


def conversation(input: str | Sequence[ChatMessage], config: GenerateConfig) -> list[ChatMessage]:
    """A new list of the messages to send; messages without an id get one.

    ``config.system_message`` comes first; ``config.reasoning_history`` (``none``, ``last``) removes earlier reasoning.
    """
    messages: list[ChatMessage] = [ChatMessageUser(content=input)] if isinstance(input, str) else list(input)
    if config.system_message is not None:
        messages.insert(0, ChatMessageSystem(content=config.system_message))
    for message in messages:
        if message.id is None:
            message.__dict__["id"] = quick_id()  # pydantic's own setter is ten times as slow
    if config.reasoning_history in ("none", "last"):
        return _without_reasoning(messages, keep_last=config.reasoning_history == "last")
    return messages


def _without_reasoning(messages: list[ChatMessage], *, keep_last: bool) -> list[ChatMessage]:
    kept = list(messages)
    for index in range(len(kept) - 1, -1, -1):
        message = kept[index]
        if not isinstance(message, ChatMessageAssistant) or isinstance(message.content, str):
            continue
        if not any(isinstance(part, ContentReasoning) for part in message.content):
            continue
        if keep_last:
            keep_last = False
            continue
        content = [part for part in message.content if not isinstance(part, ContentReasoning)]
        kept[index] = message.model_copy(update={"content": content})
    return kept


def collapse(messages: list[ChatMessage], *, users: bool, assistants: bool) -> list[ChatMessage]:
    """``messages`` with neighbours of one role joined, for providers that refuse them."""
    joined: list[ChatMessage] = []
    for message in messages:
        last = joined[-1] if joined else None
        if users and isinstance(message, ChatMessageUser) and isinstance(last, ChatMessageUser):
            joined[-1] = last.model_copy(update={"content": _join(last, message)})
        elif assistants and isinstance(message, ChatMessageAssistant) and isinstance(last, ChatMessageAssistant):
            calls = [*(last.tool_calls or []), *(message.tool_calls or [])]
            update = {"content": _join(last, message), "tool_calls": calls or None}
            joined[-1] = last.model_copy(update=update)
        else:
            joined.append(message)
    return joined


def _join(first: ChatMessageBase, second: ChatMessageBase) -> str | list[Content]:
    if isinstance(first.content, str) and isinstance(second.content, str):
        return f"{first.content}\n{second.content}"
    return [*content_parts(first.content), *content_parts(second.content)]


_describers: list[Callable[[Any], ToolInfo]] = []


def describe_tools_with(describe: Callable[[Any], ToolInfo]) -> None:
    """Let ``Model.generate`` take for tools what ``describe`` understands (called by the tool room, above this one)."""
    _describers[:] = [describe]


def tool_infos(tools: Sequence[Any]) -> list[ToolInfo]:
    """What the model is told about each of ``tools``."""
    infos: list[ToolInfo] = []
    for tool in tools:
        if isinstance(tool, ToolInfo):
            infos.append(tool)
        elif _describers:
            infos.append(_describers[0](tool))
        else:
            raise TypeError(f"generate() takes ToolInfo objects or tools made with @tool, not {type(tool).__name__}")
    return infos
