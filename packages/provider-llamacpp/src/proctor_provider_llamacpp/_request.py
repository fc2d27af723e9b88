"""From messages, tools and settings to the request that llama.cpp's chat completions take."""

from __future__ import annotations

import json
from typing import Any

from proctor.contracts import UsageError
from proctor.model import tool_schema
from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ToolChoice,
    ToolFunction,
    ToolInfo,
)

__all__ = ["build_request"]

# Settings whose name and meaning are the same on both sides.
_SAME = (
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "top_logprobs",
    "parallel_tool_calls",
)


def build_request(
    messages: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
) -> dict[str, Any]:
    """The request for one reply.

    Raises:
        UsageError: for content that is no text.
    """
    request: dict[str, Any] = {
        "messages": [_message(message) for message in messages],
        "stream": True,  # only a stream can be stopped
        "stream_options": {"include_usage": True},
        "return_progress": True,  # chunks while the prompt is read, so that it can be stopped then, too
    }
    for name in _SAME:
        value = getattr(config, name)
        if value is not None:
            request[name] = value
    if config.stop_seqs:
        request["stop"] = config.stop_seqs
    if config.logit_bias:
        request["logit_bias"] = {str(token): bias for token, bias in config.logit_bias.items()}
    if config.logprobs or config.top_logprobs:
        request["logprobs"] = True
        request.setdefault("top_logprobs", 0)
    if config.response_schema is not None:
        schema = config.response_schema
        wanted = {"name": schema.name, "schema": schema.json_schema, "strict": True}
        request["response_format"] = {"type": "json_schema", "json_schema": wanted}
    request["cache_prompt"] = _reuse(config)
    if tools:
        forced = tool_choice.name if isinstance(tool_choice, ToolFunction) else None
        # llama.cpp ignores a choice that names a function, so the model is shown that function only.
        request["tools"] = [
            {"type": "function", "function": tool_schema(tool)}
            for tool in tools
            if forced is None or tool.name == forced
        ]
        request["tool_choice"] = "required" if forced is not None or tool_choice == "any" else tool_choice
    request.update(config.extra_body or {})
    return request


def _reuse(config: GenerateConfig) -> bool:
    """Whether the start that this prompt shares with the slot's last one need not be read again.

    Reusing it saves up to half of the work on short questions with one instruction, but rounds a little differently
    from time to time. A seed asks for the same text every time, so with one nothing is reused unless ``cache_prompt``
    says so.
    """
    if isinstance(config.cache_prompt, bool):
        return config.cache_prompt
    return config.seed is None


def _message(message: ChatMessage) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": message.role, "content": _text(message)}
    if isinstance(message, ChatMessageTool):
        sent["tool_call_id"] = message.tool_call_id or ""
        if message.error is not None:
            sent["content"] = message.error.message
    elif isinstance(message, ChatMessageAssistant):
        if reasoning := _reasoning(message):
            sent["reasoning_content"] = reasoning
        if message.tool_calls:
            sent["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function, "arguments": json.dumps(call.arguments)},
                }
                for call in message.tool_calls
            ]
    return sent


def _text(message: ChatMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    for part in message.content:
        if not isinstance(part, (ContentText, ContentReasoning)):
            raise UsageError(
                f"llamacpp models read text only, but a {message.role} message has {part.type} content. "
                "Choose another model for this task, or leave the media out."
            )
    return message.text


def _reasoning(message: ChatMessageAssistant) -> str:
    if isinstance(message.content, str):
        return ""
    return "\n".join(part.reasoning for part in message.content if isinstance(part, ContentReasoning))
