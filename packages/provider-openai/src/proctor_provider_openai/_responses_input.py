"""Conversations as the ``input`` of the Responses API."""

from __future__ import annotations

from typing import Any

from proctor.model import tool_schema
from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    Content,
    ContentDocument,
    ContentImage,
    ContentText,
    ToolCall,
    ToolChoice,
    ToolFunction,
    ToolInfo,
)
from proctor_provider_openai._chat_input import arguments_text, tool_text

__all__ = ["BEFORE", "ITEM", "response_items", "response_tool_choice", "response_tools"]

ITEM = "openai_item"
"""Where a content part keeps the item that it came from, to be replayed as it was."""
BEFORE = "before_call"
"""Where a reasoning part keeps the call that it led to: the service wants the two side by side."""


def response_items(messages: list[ChatMessage], system_role: str) -> list[dict[str, Any]]:
    """The input items of a request; reasoning and server-side tool calls go back exactly as they came."""
    items: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ChatMessageAssistant):
            items += _assistant(message)
        elif isinstance(message, ChatMessageTool):
            items.append(
                {"type": "function_call_output", "call_id": message.tool_call_id, "output": _tool_output(message)}
            )
        elif isinstance(message, ChatMessageSystem):
            items.append({"role": system_role, "content": message.text})
        else:
            items.append({"role": "user", "content": _user(message.content)})
    return items


def _user(content: str | list[Content]) -> str | list[dict[str, Any]]:
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Content) -> dict[str, Any]:
    if isinstance(part, ContentText):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, ContentImage):
        detail = "high" if part.detail == "original" else part.detail
        return {"type": "input_image", "image_url": part.image, "detail": detail}
    if isinstance(part, ContentDocument):
        if part.document.startswith("data:"):
            return {"type": "input_file", "filename": part.filename or "document.pdf", "file_data": part.document}
        return {"type": "input_file", "file_url": part.document}
    raise ValueError(f"the Responses API takes no content of type {part.type!r}; try -M responses_api=false")


def _tool_output(message: ChatMessageTool) -> str | list[dict[str, Any]]:
    if message.error is not None or isinstance(message.content, str):
        return tool_text(message)
    if any(isinstance(part, (ContentImage, ContentDocument)) for part in message.content):
        return [_part(part) for part in message.content]
    return message.text


def _assistant(message: ChatMessageAssistant) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    before: dict[str, list[dict[str, Any]]] = {}
    content = [ContentText(text=message.content)] if isinstance(message.content, str) else message.content
    for part in content:
        raw = _kept(part, ITEM)
        if raw is not None:
            led_to = _kept(part, BEFORE)
            if led_to is not None:
                before.setdefault(led_to, []).append(raw)
            elif not items or items[-1] != raw:  # two parts of one message share its item
                items.append(raw)
        elif isinstance(part, ContentText) and part.text:
            items.append({"role": "assistant", "content": part.text})
        # Reasoning and server-side tools of another provider mean nothing here.
    for call in message.tool_calls or []:
        items += before.pop(call.id, [])
        items.append(_call(call))
    for orphans in before.values():
        items += orphans
    return items


def _kept(part: Content, name: str) -> Any:
    internal = getattr(part, "internal", None)
    return internal.get(name) if isinstance(internal, dict) else None


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.function,
        "arguments": arguments_text(call),
    }


def response_tools(tools: list[ToolInfo]) -> list[dict[str, Any]]:
    """The tools of a request. Not ``strict``: that mode refuses schemas with optional parameters."""
    return [{"type": "function", "strict": False, **tool_schema(tool)} for tool in tools]


def response_tool_choice(choice: ToolChoice) -> Any:
    """The tool choice of a request."""
    if isinstance(choice, ToolFunction):
        return {"type": "function", "name": choice.name}
    return "required" if choice == "any" else choice
