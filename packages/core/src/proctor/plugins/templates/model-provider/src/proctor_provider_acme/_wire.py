"""The server's words and the core's: what a request says, and what a reply means."""

from __future__ import annotations

import json
from typing import Any

from proctor.model import parse_tool_call, tool_schema
from proctor.schema import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    StopReason,
    ToolChoice,
    ToolFunction,
    ToolInfo,
)

_STOP: dict[str | None, StopReason] = {
    "stop": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}


def request_body(
    model: str, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
) -> dict[str, Any]:
    """The JSON of a request; settings that were not given are left to the server."""
    settings = {
        "max_tokens": config.max_tokens,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "stop": config.stop_seqs,
        "seed": config.seed,
    }
    body: dict[str, Any] = {"model": model, "messages": [_message(message) for message in input]}
    body |= {name: value for name, value in settings.items() if value is not None}
    if tools:
        body["tools"] = [{"type": "function", "function": tool_schema(tool)} for tool in tools]
        body["tool_choice"] = _choice(tool_choice)
    return body


def _choice(choice: ToolChoice) -> Any:
    if isinstance(choice, ToolFunction):
        return {"type": "function", "function": {"name": choice.name}}
    return "required" if choice == "any" else choice


def _message(message: ChatMessage) -> dict[str, Any]:
    if not isinstance(message.content, str) and any(part.type not in ("text", "reasoning") for part in message.content):
        raise ValueError("this provider takes text only; images and files are yours to add in _wire.py")
    if isinstance(message, ChatMessageTool):
        text = message.error.message if message.error else message.text
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": text}
    body: dict[str, Any] = {"role": message.role, "content": message.text}
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return body


def read_reply(reply: Any, model: str, tools: list[ToolInfo]) -> ModelOutput:
    """The reply as the core's output.

    Raises:
        ConnectionError: if it is no reply at all, as of a proxy on the way: worth another request.
    """
    try:
        choice = reply["choices"][0]
        message, usage = choice["message"], reply.get("usage") or {}
        calls = [
            parse_tool_call(call["id"], call["function"]["name"], call["function"]["arguments"], tools)
            for call in message.get("tool_calls") or ()
        ]
        said = ChatMessageAssistant(
            content=message.get("content") or "", tool_calls=calls or None, model=model, source="generate"
        )
        return ModelOutput(
            model=reply.get("model") or model,
            choices=[ChatCompletionChoice(message=said, stop_reason=_STOP.get(choice["finish_reason"], "unknown"))],
            usage=ModelUsage(
                input_tokens=usage.get("prompt_tokens", 0),
                output_tokens=usage.get("completion_tokens", 0),
                total_tokens=usage.get("total_tokens", 0),
            ),
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ConnectionError(f"the server's reply is no chat completion: {str(reply)[:200]}") from error
