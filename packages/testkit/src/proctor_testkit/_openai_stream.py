"""Streams of OpenAI's protocol: the events of a chat completion and of a response, each as bytes on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["chat_events", "response_events"]

_PIECE = 4  # characters of a text, or of a call's arguments, in one event


def chat_events(body: Mapping[str, Any], request: Mapping[str, Any]) -> list[bytes]:
    """The chat completion ``body`` as chunks, with its usage in the last one where the request asked for that."""
    common = {name: body[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    usage = bool((request.get("stream_options") or {}).get("include_usage"))
    chunks = [
        {**common, "choices": [{"index": choice["index"], "delta": delta, "logprobs": None, "finish_reason": reason}]}
        for choice in body["choices"]
        for delta, reason in _deltas(choice)
    ]
    if usage:
        chunks = [chunk | {"usage": None} for chunk in chunks]
        chunks.append({**common, "choices": [], "usage": body["usage"]})
    return [*(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks), b"data: [DONE]\n\n"]


def _deltas(choice: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str | None]]:
    message = choice["message"]
    yield {"role": "assistant", "content": ""}, None
    for name in ("reasoning_content", "content", "refusal"):
        for piece in _pieces(message.get(name) or ""):
            yield {name: piece}, None
    for index, call in enumerate(message.get("tool_calls", ())):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        first = {"index": index, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        yield {"tool_calls": [first]}, None
        for piece in _pieces(arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, None
    yield {}, choice["finish_reason"]


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]


def response_events(body: Mapping[str, Any]) -> list[bytes]:
    """The response ``body`` as the events of the Responses API."""
    begun = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for index, item in enumerate(body["output"]):
        events += _item_events(index, item)
    events.append((f"response.{body['status']}", {"response": dict(body)}))
    return [
        b"event: %b\ndata: %b\n\n"
        % (kind.encode(), json.dumps({"type": kind, "sequence_number": number, **data}).encode())
        for number, (kind, data) in enumerate(events)
    ]


def _item_events(index: int, item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    where = {"item_id": item["id"], "output_index": index}
    empty: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "reasoning": {"summary": []},
        "function_call": {"arguments": ""},
    }
    started = {**item, **empty[item["type"]]}
    if "status" in item:
        started["status"] = "in_progress"
    yield "response.output_item.added", {"output_index": index, "item": started}
    if item["type"] == "function_call":
        for piece in _pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", {**where, "delta": piece}
        yield "response.function_call_arguments.done", {**where, "name": item["name"], "arguments": item["arguments"]}
    for number, part in enumerate(item.get("summary", ())):
        yield from _part_events({**where, "summary_index": number}, "reasoning_summary_part", part)
    for number, part in enumerate(item.get("content", ())):
        yield from _part_events({**where, "content_index": number}, "content_part", part)
    yield "response.output_item.done", {"output_index": index, "item": dict(item)}


def _part_events(where: dict[str, Any], kind: str, part: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    field = "refusal" if part["type"] == "refusal" else "text"
    name = {"summary_text": "reasoning_summary_text", "refusal": "refusal"}.get(part["type"], "output_text")
    more: dict[str, Any] = {"logprobs": []} if name == "output_text" else {}
    yield f"response.{kind}.added", {**where, "part": {**part, field: ""}}
    for piece in _pieces(part[field]):
        yield f"response.{name}.delta", {**where, "delta": piece, **more}
    yield f"response.{name}.done", {**where, field: part[field], **more}
    yield f"response.{kind}.done", {**where, "part": dict(part)}
