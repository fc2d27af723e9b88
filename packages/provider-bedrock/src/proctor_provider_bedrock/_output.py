"""A response of Converse as a ModelOutput."""

from __future__ import annotations

import base64
import json
from typing import Any

from proctor.model import parse_tool_call
from proctor.schema import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Content,
    ContentData,
    ContentImage,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    StopReason,
    ToolCall,
    ToolInfo,
)
from proctor_provider_bedrock._errors import MalformedResponse

__all__ = ["converse_output", "plain"]

_STOP: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "model_length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}


def plain(value: Any) -> Any:
    """``value`` with bytes in base64, as they go over the wire; unchanged where there are none."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def converse_output(
    body: dict[str, Any], model: str, tools: list[ToolInfo], request_id: str | None, schema: str | None = None
) -> ModelOutput:
    """The reply in ``body``.

    Args:
        body: a response of Converse; the input of a tool may be JSON text, as streams have it.
        model: the model's name.
        tools: what it was offered.
        request_id: Bedrock's name for the request.
        schema: the tool whose input is the reply, where that is how structured output was asked for.

    Raises:
        MalformedResponse: if it is none.
    """
    try:
        message = body["output"]["message"]
        calls: list[ToolCall] = []
        content: list[Content] = []
        for block in message["content"]:
            if "toolUse" in block:
                calls.append(_call(block["toolUse"], tools))
            else:
                content.append(_content(block))
        stop, said = _STOP.get(body["stopReason"], "unknown"), body["stopReason"]
        usage = _usage(body.get("usage"))
    except (KeyError, TypeError, AttributeError, ValueError) as error:  # ValueError: a record that refuses a value
        raise MalformedResponse(
            f"{model}: the response is not one of Converse ({error!r}): {str(body)[:200]}"
        ) from error
    if schema is not None and [call.function for call in calls] == [schema]:
        content.append(ContentText(text=json.dumps(calls.pop().arguments, ensure_ascii=False)))
        stop = "stop" if stop == "tool_calls" else stop
    if calls and stop == "stop":
        stop = "tool_calls"
    name = _invoked(body) or model
    choice = ChatCompletionChoice(
        message=ChatMessageAssistant(content=_simple(content), source="generate", model=name, tool_calls=calls or None),
        stop_reason=stop,
        # Bedrock's own word, where ours says less.
        stop_details={"type": said} if stop in ("content_filter", "unknown") else None,
    )
    extra = {key: plain(body[key]) for key in ("trace", "additionalModelResponseFields") if body.get(key)}
    return ModelOutput(model=name, choices=[choice], usage=usage, response_id=request_id, metadata=extra or None)


def _simple(content: list[Content]) -> str | list[Content]:
    if not content:
        return ""
    only = content[0]
    return only.text if len(content) == 1 and isinstance(only, ContentText) and only.internal is None else content


def _call(block: dict[str, Any], tools: list[ToolInfo]) -> ToolCall:
    return parse_tool_call(block["toolUseId"], block["name"], block.get("input"), tools)


def _content(block: dict[str, Any]) -> Content:
    if "text" in block:
        return ContentText(text=block["text"])
    if "reasoningContent" in block:
        reasoning = block["reasoningContent"]
        if "redactedContent" in reasoning:
            return ContentReasoning(reasoning=plain(reasoning["redactedContent"]), redacted=True)
        thought = reasoning["reasoningText"]
        return ContentReasoning(reasoning=thought["text"], signature=thought.get("signature"))
    if "citationsContent" in block:
        cited = block["citationsContent"]
        text = "".join(piece.get("text", "") for piece in cited.get("content", []))
        return ContentText(text=text, internal={"citations": plain(cited.get("citations", []))})
    if "image" in block and "bytes" in block["image"].get("source", {}):
        image = block["image"]
        return ContentImage(image=f"data:image/{image['format']};base64,{plain(image['source']['bytes'])}")
    return ContentData(data=plain(block))


def _usage(usage: dict[str, Any] | None) -> ModelUsage | None:
    """Token counts; Bedrock does not count what went through a cache among the input tokens."""
    if usage is None:
        return None
    read, written = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
    inputs, outputs = usage["inputTokens"], usage["outputTokens"]
    return ModelUsage(
        input_tokens=inputs,
        output_tokens=outputs,
        total_tokens=max(usage.get("totalTokens") or 0, inputs + outputs + (read or 0) + (written or 0)),
        input_tokens_cache_read=read,
        input_tokens_cache_write=written,
    )


def _invoked(body: dict[str, Any]) -> str | None:
    """The model that a router chose."""
    router = (body.get("trace") or {}).get("promptRouter") or {}
    return router.get("invokedModelId")
