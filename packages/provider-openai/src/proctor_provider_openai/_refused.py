"""Refusals that are replies: a conversation too long for the model, and content that a filter stopped."""

from __future__ import annotations

import re
from typing import Any

from proctor.schema import ModelOutput, StopReason
from proctor_provider_openai._errors import APIError

__all__ = ["refused_output"]

_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_FILTER_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "invalid_prompt",
        "ResponsibleAIPolicyViolation",
        "data_inspection_failed",
    }
)
_TOO_LONG = re.compile(
    r"maximum context length|context[_ ](?:window|length|size)|prompt is too long|too many (?:input )?tokens"
    r"|input (?:is )?too long|exceeds? (?:the )?(?:model'?s )?max(?:imum)? (?:input |sequence )?(?:tokens|length)"
    r"|max_model_len",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content (?:management policy|filter)|violat\w+ (?:our )?(?:usage|content) polic", re.IGNORECASE
)


def refused_output(error: APIError, body: Any, model: str) -> ModelOutput | None:
    """The output that ``error`` stands for, or None when it is an error."""
    if error.status not in (400, 413, 422):
        return None
    reason: StopReason
    if error.code in _TOO_LONG_CODES or error.kind in _TOO_LONG_CODES or _TOO_LONG.search(error.message):
        reason = "model_length"
    elif error.code in _FILTER_CODES or error.kind in _FILTER_CODES or _FILTERED.search(error.message):
        reason = "content_filter"
    else:
        return None
    output = ModelOutput.from_content(model, error.message, reason, error=error.message)
    if reason == "content_filter" and isinstance(body, dict) and isinstance(body.get("error"), dict):
        inner = body["error"].get("innererror")
        if isinstance(inner, dict) and inner.get("content_filter_result"):
            output.choices[0].stop_details = {"type": "content_filter", "explanation": error.message}
            output.metadata = {"content_filter_result": inner["content_filter_result"]}
    return output
