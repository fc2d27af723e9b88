"""Bodies and events of Amazon Bedrock's Converse and ConverseStream, and what it refuses, as its documentation says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proctor_testkit._event_stream import event

__all__ = ["answer", "converse_body", "problem", "stream_messages"]

_numbers = itertools.count(1)
_PIECE = 7  # characters of a delta: texts come in several


def answer(
    text: str | None = None,
    *,
    calls: Sequence[tuple[str, Any]] = (),
    reasoning: str | None = None,
    signature: str | None = None,
    redacted: str | None = None,
    finish: str | None = None,
    usage: Mapping[str, int] | None = None,
    trace: Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a model says.

    Args:
        text: the text of the reply.
        calls: name and arguments (an object) of each tool call; text stands for JSON in a stream, broken or not.
        reasoning: what the model thought.
        signature: what proves that it did.
        redacted: reasoning that nobody may read, in base64.
        finish: Bedrock's stop reason; by default ``tool_use`` with calls, else ``end_turn``.
        usage: of ``input``, ``output``, ``cache_read`` and ``cache_write`` token counts.
        trace: the trace of a guardrail or a router.
        fields: the additional fields of the model.
    """
    return {
        "text": text,
        "calls": [(f"tooluse_{next(_numbers)}", name, value) for name, value in calls],
        "reasoning": reasoning,
        "signature": signature,
        "redacted": redacted,
        "finish": finish or ("tool_use" if calls else "end_turn"),
        "usage": {"input": 20, "output": 10, "cache_read": 0, "cache_write": 0, **(usage or {})},
        "trace": trace,
        "fields": fields,
    }


def converse_body(said: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """The response of Converse that says ``said`` to ``request``."""
    content: list[dict[str, Any]] = []
    if said["reasoning"] is not None:
        thought = {"text": said["reasoning"]}
        if said["signature"] is not None:
            thought["signature"] = said["signature"]
        content.append({"reasoningContent": {"reasoningText": thought}})
    if said["redacted"] is not None:
        content.append({"reasoningContent": {"redactedContent": said["redacted"]}})
    if said["text"] is not None:
        content.append({"text": said["text"]})
    for id, name, value in said["calls"]:
        content.append({"toolUse": {"toolUseId": id, "name": name, "input": value}})
    body: dict[str, Any] = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _stop(said, request),
        "usage": _usage(said),
        "metrics": {"latencyMs": 12},
    }
    if said["trace"] is not None:
        body["trace"] = said["trace"]
    if said["fields"] is not None:
        body["additionalModelResponseFields"] = said["fields"]
    return body


def stream_messages(said: Mapping[str, Any], request: Mapping[str, Any]) -> list[bytes]:
    """The messages of ConverseStream's event stream that say ``said`` to ``request``."""
    stop: dict[str, Any] = {"stopReason": _stop(said, request)}
    if said["fields"] is not None:
        stop["additionalModelResponseFields"] = said["fields"]
    end: dict[str, Any] = {"usage": _usage(said), "metrics": {"latencyMs": 12}}
    if said["trace"] is not None:
        end["trace"] = said["trace"]
    messages = [event("messageStart", {"role": "assistant"})]
    for index, (start, deltas) in enumerate(_blocks(said)):
        if start is not None:
            messages.append(event("contentBlockStart", {"start": start, "contentBlockIndex": index}))
        messages += [event("contentBlockDelta", {"delta": delta, "contentBlockIndex": index}) for delta in deltas]
        messages.append(event("contentBlockStop", {"contentBlockIndex": index}))
    return [*messages, event("messageStop", stop), event("metadata", end)]


def _blocks(said: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any] | None, list[dict[str, Any]]]]:
    """Each block as what starts it, if anything does, and its deltas."""
    if said["reasoning"] is not None:
        deltas = [{"reasoningContent": {"text": piece}} for piece in _pieces(said["reasoning"])]
        if said["signature"] is not None:
            deltas.append({"reasoningContent": {"signature": said["signature"]}})
        yield None, deltas
    if said["redacted"] is not None:
        yield None, [{"reasoningContent": {"redactedContent": said["redacted"]}}]
    if said["text"] is not None:
        yield None, [{"text": piece} for piece in _pieces(said["text"])]
    for id, name, value in said["calls"]:
        text = value if isinstance(value, str) else json.dumps(value)
        yield {"toolUse": {"toolUseId": id, "name": name}}, [{"toolUse": {"input": piece}} for piece in _pieces(text)]


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def _stop(said: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    return "max_tokens" if request.get("inferenceConfig", {}).get("maxTokens") == 1 else str(said["finish"])


def _usage(said: Mapping[str, Any]) -> dict[str, int]:
    usage = said["usage"]
    counts = {
        "inputTokens": usage["input"],
        "outputTokens": usage["output"],
        "totalTokens": usage["input"] + usage["output"] + usage["cache_read"] + usage["cache_write"],
    }
    if usage["cache_read"] or usage["cache_write"]:
        counts |= {"cacheReadInputTokens": usage["cache_read"], "cacheWriteInputTokens": usage["cache_write"]}
    return counts


def problem(body: Mapping[str, Any]) -> str | None:
    """Why Bedrock would refuse this request, or None."""
    messages = body.get("messages") or []
    if not messages or messages[0]["role"] != "user":
        return "A conversation must start with a user message."
    asked: set[str] = set()
    before = ""
    for at, message in enumerate(messages):
        where = f"messages.{at}"
        if message["role"] == before:
            return "A conversation must alternate between user and assistant roles."
        before = message["role"]
        if not message["content"]:
            return f"The content field in the Message object at {where} is empty."
        found = _blank(message["content"], where)
        if found:
            return found
        answered = {block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block}
        if answered != asked:
            return f"The toolResult blocks at {where}.content do not fit the toolUse blocks of the previous turn."
        asked = {block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block}
        if (asked or answered) and "toolConfig" not in body:
            return "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        documents = [block["document"]["name"] for block in message["content"] if "document" in block]
        if documents and not any("text" in block for block in message["content"]):
            return "A text block is required in a message with a document."
    return _blank(body.get("system") or [], "system")


def _blank(blocks: Sequence[Mapping[str, Any]], where: str) -> str | None:
    for at, block in enumerate(blocks):
        if "text" in block and not block["text"].strip():
            return f"The text field in the ContentBlock object at {where}.content.{at} is blank."
        if "toolResult" in block:
            inner = _blank(block["toolResult"]["content"], f"{where}.content.{at}.toolResult")
            if inner:
                return inner
    return None
