"""The events of ConverseStream, put together to the response that Converse would have given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proctor_provider_bedrock._errors import MalformedResponse

__all__ = ["folded"]


def folded(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """One response; the input of a tool stays JSON text, byte for byte as it came.

    Raises:
        MalformedResponse: if the stream ends before its message does.
    """
    blocks: dict[int, dict[str, Any]] = {}
    body: dict[str, Any] = {}
    for event in events:
        if "contentBlockStart" in event:
            start = event["contentBlockStart"]
            blocks[start["contentBlockIndex"]] = _started(start["start"])
        elif "contentBlockDelta" in event:
            delta = event["contentBlockDelta"]
            _add(blocks.setdefault(delta["contentBlockIndex"], {}), delta["delta"])
        elif "messageStop" in event:
            body |= event["messageStop"]
        elif "metadata" in event:
            body |= event["metadata"]
    if "stopReason" not in body:
        raise MalformedResponse(f"the stream broke off after {len(blocks)} blocks, before the end of the message")
    content = [blocks[index] for index in sorted(blocks) if blocks[index]]
    return {"output": {"message": {"role": "assistant", "content": content}}, **body}


def _started(start: dict[str, Any]) -> dict[str, Any]:
    if "toolUse" in start:
        return {"toolUse": {**start["toolUse"], "input": ""}}
    return {key: dict(value) for key, value in start.items() if isinstance(value, dict)}


def _add(block: dict[str, Any], delta: dict[str, Any]) -> None:
    if "text" in delta and "citationsContent" in block:
        block["citationsContent"]["content"][0]["text"] += delta["text"]
    elif "text" in delta:
        block["text"] = block.get("text", "") + delta["text"]
    elif "toolUse" in delta:
        block.setdefault("toolUse", {"input": ""})["input"] += delta["toolUse"].get("input", "")
    elif "reasoningContent" in delta:
        _add_reasoning(block.setdefault("reasoningContent", {}), delta["reasoningContent"])
    elif "citation" in delta:
        # Citations come in the block of the text that they belong to.
        if "citationsContent" not in block:
            block["citationsContent"] = {"content": [{"text": block.pop("text", "")}], "citations": []}
        block["citationsContent"]["citations"].append(delta["citation"])
    elif "image" in delta:
        block.setdefault("image", {}).update(delta["image"])


def _add_reasoning(reasoning: dict[str, Any], delta: dict[str, Any]) -> None:
    if "redactedContent" in delta:
        reasoning["redactedContent"] = reasoning.get("redactedContent", b"") + delta["redactedContent"]
        return
    thought = reasoning.setdefault("reasoningText", {"text": ""})
    thought["text"] += delta.get("text", "")
    if "signature" in delta:
        thought["signature"] = thought.get("signature", "") + delta["signature"]
