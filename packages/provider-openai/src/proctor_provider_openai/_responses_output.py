"""A reply of the Responses API as a ModelOutput."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from proctor.model import parse_tool_call
from proctor.schema import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Content,
    ContentReasoning,
    ContentText,
    ContentToolUse,
    JsonValue,
    Logprobs,
    ModelOutput,
    ModelUsage,
    StopReason,
    ToolCall,
    ToolInfo,
)
from proctor_provider_openai._errors import APIError, MalformedResponse, refusal, retry_after
from proctor_provider_openai._responses_input import BEFORE, ITEM

__all__ = ["response_output"]

_STATUS = {"rate_limit_exceeded": 429, "server_error": 500, "vector_store_timeout": 504}
_POLICIES = frozenset({"invalid_prompt", "bio_policy", "misalignment_policy_violation"})
_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}
_SERVER_TOOLS = {
    "web_search_call": "web_search",
    "file_search_call": "web_search",
    "code_interpreter_call": "code_execution",
    "mcp_call": "mcp_call",
}


def response_output(body: Any, model: str, tools: list[ToolInfo], headers: Mapping[str, str]) -> ModelOutput:
    """The reply in ``body``; ``headers`` may say when to try again, should it be an error.

    Raises:
        MalformedResponse: if it is none.
        APIError: if the response says that it failed.
    """
    if isinstance(body, dict) and body.get("error") and body.get("status") != "failed":
        raise refusal(200, headers, body)
    if not isinstance(body, dict) or not isinstance(body.get("output"), list):
        raise MalformedResponse(f"{model}: the response has no output: {str(body)[:200]}")
    if body.get("status") == "failed":
        error = body.get("error") or {}
        code = str(error.get("code") or "server_error")
        if code in _POLICIES:
            text = str(error.get("message") or code)
            return ModelOutput.from_content(model, text, "content_filter", error=text)
        message = str(error.get("message") or "the response failed")
        raise APIError(_STATUS.get(code, 400), message, code=code, retry_after=retry_after(headers, message))
    name = body.get("model") or model
    try:
        # A message beside reasoning goes back with its id; one that stands alone needs no second copy in the log.
        reader = _Reader(tools, keep=any(item["type"] != "message" for item in body["output"]))
        for index, item in enumerate(body["output"]):
            reader.item(item, body["output"][index + 1 :])
        choice = reader.choice(name, body)
        return ModelOutput(model=name, choices=[choice], usage=_usage(body.get("usage")), response_id=body.get("id"))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise MalformedResponse(f"{model}: the response can't be read ({error}): {str(body)[:200]}") from error


class _Reader:
    """Gathers content, calls and log probabilities from output items."""

    def __init__(self, tools: list[ToolInfo], keep: bool) -> None:
        self._tools = tools
        self._content: list[Content] = []
        self._calls: list[ToolCall] = []
        self._logprobs: list[dict[str, Any]] = []
        self._refused = False
        self._keep = keep

    def item(self, item: dict[str, Any], rest: list[dict[str, Any]]) -> None:
        kind = item["type"]
        if kind == "message":
            self._message(item)
        elif kind == "reasoning":
            self._reasoning(item, rest)
        elif kind == "function_call":
            self._calls.append(parse_tool_call(item["call_id"], item["name"], item.get("arguments"), self._tools))
        elif kind in _SERVER_TOOLS:
            self._content.append(_server_tool(item))

    def _message(self, item: dict[str, Any]) -> None:
        internal: JsonValue = {ITEM: item} if self._keep else None
        for part in item["content"]:
            if part["type"] == "output_text":
                citations = [_citation(note) for note in part.get("annotations") or []]
                self._content.append(ContentText(text=part["text"], citations=citations or None, internal=internal))
                self._logprobs += part.get("logprobs") or []
            elif part["type"] == "refusal":
                self._refused = True
                self._content.append(ContentText(text=part["refusal"], refusal=True, internal=internal))

    def _reasoning(self, item: dict[str, Any], rest: list[dict[str, Any]]) -> None:
        summary = "\n\n".join(part["text"] for part in item.get("summary") or [])
        text = "\n\n".join(part["text"] for part in item.get("content") or [])
        following = next((other for other in rest if other["type"] != "reasoning"), None)
        call = following["call_id"] if following is not None and following["type"] == "function_call" else None
        internal = {ITEM: item, **({BEFORE: call} if call else {})}
        self._content.append(
            ContentReasoning(
                reasoning=text or item.get("encrypted_content") or "",
                summary=summary or None,
                signature=item.get("id"),
                redacted=not text,
                internal=internal,
            )
        )

    def choice(self, model: str, body: dict[str, Any]) -> ChatCompletionChoice:
        content: str | list[Content] = self._content or ""
        only = self._content[0] if len(self._content) == 1 else None
        if isinstance(only, ContentText) and not (only.internal or only.citations or only.refusal):
            content = only.text
        message = ChatMessageAssistant(content=content, source="generate", model=model, tool_calls=self._calls or None)
        return ChatCompletionChoice(
            message=message,
            stop_reason=self._stop_reason(body),
            logprobs=Logprobs.model_validate({"content": self._logprobs}) if self._logprobs else None,
        )

    def _stop_reason(self, body: dict[str, Any]) -> StopReason:
        if body.get("status") == "incomplete":
            reason = (body.get("incomplete_details") or {}).get("reason")
            return _INCOMPLETE.get(reason or "", "unknown")
        if self._refused:
            return "content_filter"
        return "tool_calls" if self._calls else "stop"


def _server_tool(item: dict[str, Any]) -> ContentToolUse:
    asked = item.get("action") or item.get("arguments") or item.get("code") or item.get("queries")
    result = item.get("output") or item.get("outputs") or item.get("results")
    return ContentToolUse.model_validate(
        {
            "tool_type": _SERVER_TOOLS[item["type"]],
            "id": item["id"],
            "name": item.get("name") or item["type"].removesuffix("_call"),
            "context": item.get("server_label"),
            "arguments": asked if isinstance(asked, str) else json.dumps(asked),
            "result": result if isinstance(result, str) else json.dumps(result),
            "error": str(item["error"]) if item.get("error") else None,
            "internal": {ITEM: item},
        }
    )


def _citation(note: dict[str, Any]) -> dict[str, Any]:
    if note.get("type") == "url_citation":
        return {"type": "url", "url": note.get("url"), "title": note.get("title")}
    return {"type": "document", "title": note.get("filename") or note.get("title"), "internal": note}


def _usage(usage: dict[str, Any] | None) -> ModelUsage | None:
    if not usage:
        return None
    asked, answered = usage.get("input_tokens") or 0, usage.get("output_tokens") or 0
    details = usage.get("input_tokens_details") or {}
    cached, written = details.get("cached_tokens"), details.get("cache_write_tokens")
    return ModelUsage(
        input_tokens=max(0, asked - (cached or 0) - (written or 0)),
        output_tokens=answered,
        total_tokens=usage.get("total_tokens") or asked + answered,
        input_tokens_cache_write=written,
        input_tokens_cache_read=cached,
        reasoning_tokens=(usage.get("output_tokens_details") or {}).get("reasoning_tokens"),
    )
