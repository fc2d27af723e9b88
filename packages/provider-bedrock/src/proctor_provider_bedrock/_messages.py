"""Conversations as Converse takes them: two roles by turns, no blank text, reasoning only with its proof."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
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
    content_parts,
)
from proctor_provider_bedrock._args import Family
from proctor_provider_bedrock._media import audio_block, document_block, image_block, video_block

__all__ = ["converse_messages"]

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KNOWS_ERRORS = frozenset({"anthropic", "nova"})  # who takes the status of a tool's result
_NO_OUTPUT = "(no output)"


def converse_messages(
    messages: list[ChatMessage], *, with_tools: bool, family: Family
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The system blocks and the messages of a request.

    Neighbours of one role become one message, since roles must alternate; blank texts are left out, since Bedrock
    refuses them. Where no tool may be called, earlier calls and their results are told as text: Converse refuses their
    blocks in a request that defines no tools.

    Raises:
        ValueError: for content that Converse does not take, or when nothing is left to send.
    """
    system: list[dict[str, Any]] = []
    sent: list[dict[str, Any]] = []
    names: set[str] = set()
    for message in messages:
        if isinstance(message, ChatMessageSystem):
            system += _text(message.text)
            continue
        role = "user"
        if isinstance(message, ChatMessageAssistant):
            role, blocks = "assistant", _assistant(message, with_tools)
        elif isinstance(message, ChatMessageTool):
            blocks = _result(message, with_tools, family)
        else:
            blocks = [block for part in content_parts(message.content) for block in _user(part, names)]
            if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
                blocks.append({"text": "(see the document)"})  # Bedrock takes no document without a text beside it
        if not blocks:
            continue
        if sent and sent[-1]["role"] == role:
            sent[-1]["content"] += blocks
        else:
            sent.append({"role": role, "content": blocks})
    if not sent:
        raise ValueError("there is nothing to send to Bedrock: the conversation has no text but blanks")
    return system, sent


def _text(text: str) -> list[dict[str, Any]]:
    return [{"text": text}] if text.strip() else []


def _user(part: Content, names: set[str]) -> list[dict[str, Any]]:
    if isinstance(part, ContentText):
        return _text(part.text)
    if isinstance(part, ContentImage):
        return [image_block(part)]
    if isinstance(part, ContentDocument):
        return [document_block(part, names)]
    if isinstance(part, ContentAudio):
        return [audio_block(part)]
    if isinstance(part, ContentVideo):
        return [video_block(part)]
    raise ValueError(f"Converse takes no content of type {part.type!r} from a user")


def _assistant(message: ChatMessageAssistant, with_tools: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in content_parts(message.content):
        if isinstance(part, ContentText):
            blocks += _text(part.text)
        elif isinstance(part, ContentReasoning):
            blocks += _reasoning(part)
    blocks += [_call(call, with_tools) for call in message.tool_calls or []]
    # Reasoning alone is no turn: newer models refuse it.
    return blocks if any("reasoningContent" not in block for block in blocks) else []


def _reasoning(part: ContentReasoning) -> list[dict[str, Any]]:
    """Reasoning as it came. Without a signature models refuse it, their own included."""
    if part.redacted:
        try:
            return [{"reasoningContent": {"redactedContent": base64.b64decode(part.reasoning, validate=True)}}]
        except binascii.Error:
            return []  # another provider's
    if part.signature is None:
        return []
    return [{"reasoningContent": {"reasoningText": {"text": part.reasoning, "signature": part.signature}}}]


def _call(call: ToolCall, with_tools: bool) -> dict[str, Any]:
    if with_tools:
        return {"toolUse": {"toolUseId": _id(call.id), "name": call.function, "input": call.arguments}}
    return {"text": f"[called {call.function} with {json.dumps(call.arguments, ensure_ascii=False)}]"}


def _result(message: ChatMessageTool, with_tools: bool, family: Family) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if message.error is not None:
        blocks = _text(message.error.message)
    else:
        for part in content_parts(message.content):
            if isinstance(part, ContentText):
                blocks += _text(part.text)
            elif isinstance(part, ContentImage):
                blocks.append(image_block(part))
    blocks = blocks or [{"text": _NO_OUTPUT}]
    if not with_tools:
        return [{"text": f"[{message.function or 'the tool'} answered]"}, *blocks]
    result: dict[str, Any] = {"toolUseId": _id(message.tool_call_id or ""), "content": blocks}
    if message.error is not None and family in _KNOWS_ERRORS:
        result["status"] = "error"
    return [{"toolResult": result}]


def _id(id: str) -> str:
    """``id``, or another in its place that Bedrock takes: those of other providers may be longer."""
    return id if _ID.fullmatch(id) else f"call_{hashlib.blake2b(id.encode(), digest_size=8).hexdigest()}"
