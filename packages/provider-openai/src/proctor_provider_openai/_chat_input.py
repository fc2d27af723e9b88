"""Conversations as the ``messages`` of a chat completion."""

from __future__ import annotations

import json
from typing import Any

from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    Content,
    ContentAudio,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    ContentVideo,
    ToolCall,
)
from proctor_provider_openai._media import base64_of
from proctor_provider_openai._services import Quirks

__all__ = ["arguments_text", "chat_messages", "tool_text"]


def chat_messages(messages: list[ChatMessage], quirks: Quirks, system_role: str) -> list[dict[str, Any]]:
    """The messages of a request.

    Images that a tool returned follow the tool messages in a user message, since tool messages hold text only.
    """
    wire: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ChatMessageTool):
            wire.append({"role": "tool", "tool_call_id": message.tool_call_id, "content": tool_text(message)})
            if not isinstance(message.content, str):
                images += [_image(part) for part in message.content if isinstance(part, ContentImage)]
            continue
        if images:
            wire.append({"role": "user", "content": images})
            images = []
        if isinstance(message, ChatMessageAssistant):
            wire.append(_assistant(message, quirks))
        elif isinstance(message, ChatMessageSystem):
            wire.append({"role": system_role, "content": message.text})
        else:
            content = message.content
            wire.append(
                {
                    "role": message.role,
                    "content": content if isinstance(content, str) else [_part(part, quirks) for part in content],
                }
            )
    if images:
        wire.append({"role": "user", "content": images})
    return wire


def tool_text(message: ChatMessageTool) -> str:
    """What a tool answered, or why it failed, as text."""
    return message.error.message if message.error is not None else message.text


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as the JSON text that services want back."""
    return json.dumps(call.arguments, ensure_ascii=False)


def _assistant(message: ChatMessageAssistant, quirks: Quirks) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": "assistant"}
    text: str | None = message.text
    if quirks.replay is not None and not isinstance(message.content, str):
        reasoning = [part for part in message.content if isinstance(part, ContentReasoning)]
        if quirks.replay == "reasoning_details":
            details = [detail for part in reasoning if isinstance(part.internal, list) for detail in part.internal]
            if details:
                wire["reasoning_details"] = details
        elif reasoning:
            thoughts = "\n".join(part.reasoning for part in reasoning if not part.redacted)
            if quirks.replay == "think":
                text = f"<think>\n{thoughts}\n</think>\n\n{text}"
            else:
                wire[quirks.replay] = thoughts
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function, "arguments": arguments_text(call)},
            }
            for call in message.tool_calls
        ]
        text = text or None  # some services refuse an empty text beside calls
    wire["content"] = text
    return wire


def _part(part: Content, quirks: Quirks) -> dict[str, Any]:
    if isinstance(part, ContentText):
        return {"type": "text", "text": part.text}
    if isinstance(part, ContentImage):
        return _image(part)
    if isinstance(part, ContentAudio):
        return {"type": "input_audio", "input_audio": {"data": base64_of(part.audio), "format": part.format}}
    if isinstance(part, ContentDocument):
        return {"type": "file", "file": {"filename": part.filename or "document.pdf", "file_data": part.document}}
    if isinstance(part, ContentVideo) and quirks.video:
        return {"type": "video_url", "video_url": {"url": part.video}}
    raise ValueError(f"chat completions take no content of type {part.type!r} from a user")


def _image(part: ContentImage) -> dict[str, Any]:
    image: dict[str, Any] = {"url": part.image}
    if part.detail != "auto":
        image["detail"] = "high" if part.detail == "original" else part.detail
    return {"type": "image_url", "image_url": image}
