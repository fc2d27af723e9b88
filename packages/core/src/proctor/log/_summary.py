"""What a table of samples shows of one sample, small enough to keep for all of them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from proctor.log._json import encode, fields
from proctor.log._outcomes import cut_short
from proctor.schema import ChatMessage, ContentText, EvalSample, EvalSampleSummary, Score

__all__ = ["summarise", "summary_fields"]

_TEXT = 5120  # characters of input and target
_DETAIL = 1024  # characters of a score's text or a metadata value
_CUT = "...\n(content truncated)"
_REMOVED = "Key removed from summary (> 1k)"
_NAMES = {
    "ContentReasoning": "Reasoning",
    "ContentImage": "Image",
    "ContentAudio": "Audio",
    "ContentVideo": "Video",
    "ContentDocument": "Document",
    "ContentData": "Data",
    "ContentToolUse": "Tool Use",
}


def summarise(sample: EvalSample) -> EvalSampleSummary:
    """The summary of ``sample``: long texts cut, media and large metadata named instead of shown."""
    found = summary_fields(sample)
    try:
        return EvalSampleSummary.model_validate(found)
    except ValidationError:  # lone surrogates, which pydantic refuses in any text
        return EvalSampleSummary.trusted(**found)


def summary_fields(sample: EvalSample) -> dict[str, Any]:
    """The fields of the summary of ``sample``, in the order of the format, those that are ``None`` left out."""
    value = sample.__dict__  # an attribute of a record costs three times as much
    asked, target, scores = value["input"], value["target"], value["scores"]
    error, limit = value["error"], value["limit"]
    found = {
        "id": value["id"],
        "epoch": value["epoch"],
        "input": _text(asked) if isinstance(asked, str) else [_message(item) for item in asked],
        "choices": value["choices"],
        "target": _text(target) if isinstance(target, str) else [_text(item) for item in target],
        "description": value["description"],
        "metadata": _metadata(value["metadata"]) if value["metadata"] else {},
        "scores": None if scores is None else {name: _score(score) for name, score in scores.items()},
        "model_usage": value["model_usage"],
        "role_usage": value["role_usage"],
        "model_fallbacks": value["model_fallbacks"],
        "started_at": value["started_at"],
        "completed_at": value["completed_at"],
        "total_time": value["total_time"],
        "working_time": value["working_time"],
        "uuid": value["uuid"],
        "invalidation": value["invalidation"],
        "error": None if error is None else error.message,
        "limit": None if limit is None else limit.type,
        "limit_reason": None if limit is None else limit.reason,
        "retries": None if value["error_retries"] is None else len(value["error_retries"]),
        "completed": True,
        "message_count": len(value["messages"] or ()),
        "turn_count": value["turn_count"],
        "token_limit": value["token_limit"],
        "token_limit_type": value["token_limit_type"],
        "token_limit_usage": value["token_limit_usage"],
        "message_limit": value["message_limit"],
        "time_limit": value["time_limit"],
        # Not in the peer's summaries: with it, those of a log say all that is counted of a sample.
        "stop_reason": cut_short(sample),
    }
    return {name: item for name, item in found.items() if item is not None}


def _text(text: str) -> str:
    return text if len(text) <= _TEXT else text[:_TEXT] + _CUT


def _message(message: ChatMessage) -> dict[str, Any]:
    value = fields(message)
    content = message.content
    if isinstance(content, str):
        value["content"] = _text(content)
    else:
        value["content"] = [
            {"type": "text", "text": _text(part.text)}
            if isinstance(part, ContentText)
            else {"type": "text", "text": f"({_NAMES.get(type(part).__name__, 'Content')})"}
            for part in content
        ]
    return value


def _detail(text: str) -> str:
    if len(text) <= _DETAIL:
        return " ".join(text.split())
    return textwrap.shorten(text, _DETAIL, placeholder="...")


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _metadata_value(value) for key, value in metadata.items()}


def _metadata_value(value: Any) -> Any:
    if isinstance(value, str):
        return _detail(value)
    if value is None or isinstance(value, (int, float)):
        return value
    return _REMOVED if len(encode(value)) > _DETAIL else value


def _score(score: Score) -> dict[str, Any]:
    value = fields(score)
    for name in ("answer", "explanation", "reason"):
        text = value.get(name)
        if isinstance(text, str):
            value[name] = _detail(text)
    if value.get("metadata"):
        value["metadata"] = _metadata(score.metadata or {})
    value["history"] = []
    return value
