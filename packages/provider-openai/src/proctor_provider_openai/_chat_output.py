"""A chat completion as a ModelOutput."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proctor.model import parse_tool_call
from proctor.schema import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Content,
    ContentAudio,
    ContentReasoning,
    ContentText,
    Logprobs,
    ModelOutput,
    ModelUsage,
    StopReason,
    ToolCall,
    ToolInfo,
)
from proctor_provider_openai._errors import MalformedResponse, refusal

__all__ = ["chat_output", "chat_usage", "split_thinking"]

_STOP: dict[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "model_length",
    "model_context_window_exceeded": "model_length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "sensitive": "content_filter",
    "safety": "content_filter",
}
_THINKING = re.compile(r"\s*<think(?:ing)?>(.*?)</think(?:ing)?>\s*", re.DOTALL)


def chat_output(
    body: Any, model: str, tools: list[ToolInfo], headers: Mapping[str, str], *, official: bool
) -> ModelOutput:
    """The reply in ``body``; ``headers`` may say when to try again, should it be an error.

    Raises:
        MalformedResponse: if it is none.
        APIError: if it is an error that came with status 200.
    """
    if not isinstance(body, dict):
        raise MalformedResponse(f"{model}: the response is not a JSON object but {str(body)[:200]!r}")
    choices = body.get("choices")
    if not choices:
        if body.get("error"):
            raise refusal(200, headers, body)
        raise MalformedResponse(f"{model}: the response has no choices: {str(body)[:200]}")
    name = body.get("model") or model
    try:
        made = [_choice(choice, name, tools, headers, official) for choice in choices]
        return ModelOutput(model=name, choices=made, usage=chat_usage(body.get("usage")), response_id=body.get("id"))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise MalformedResponse(
            f"{model}: the response is not a chat completion ({error}): {str(body)[:200]}"
        ) from error


def _choice(
    choice: dict[str, Any], model: str, tools: list[ToolInfo], headers: Mapping[str, str], official: bool
) -> ChatCompletionChoice:
    if choice.get("error"):
        raise refusal(200, headers, choice)
    message = choice["message"]
    content = _content(message, official)
    calls = message.get("tool_calls")
    made = [_call(call, tools, index) for index, call in enumerate(calls)] if calls else None
    stop = _STOP.get(choice.get("finish_reason") or "", "unknown")
    if made and stop == "stop":  # said by several servers of open weights
        stop = "tool_calls"
    if message.get("refusal"):
        stop = "content_filter"
    logprobs = choice.get("logprobs")
    return ChatCompletionChoice(
        message=ChatMessageAssistant(content=content, source="generate", model=model, tool_calls=made),
        stop_reason=stop,
        logprobs=Logprobs(content=logprobs["content"]) if logprobs and logprobs.get("content") else None,
    )


def _call(call: dict[str, Any], tools: list[ToolInfo], index: int) -> ToolCall:
    function = call["function"]
    return parse_tool_call(call.get("id") or f"call_{index}", function["name"], function.get("arguments"), tools)


def _content(message: dict[str, Any], official: bool) -> str | list[Content]:
    text = message.get("content")
    if isinstance(text, str):
        thought = message.get("reasoning_content") or message.get("reasoning")
        if thought is None and "</think" not in text and not message.get("reasoning_details"):
            refused = message.get("refusal")
            if not refused and not message.get("audio"):
                return text
    return _parts(message, official)


def _parts(message: dict[str, Any], official: bool) -> list[Content]:
    parts: list[Content] = []
    raw = message.get("content")
    texts, thoughts = _chunks(raw) if isinstance(raw, list) else ([raw or ""], [])
    details = message.get("reasoning_details")
    thought = message.get("reasoning_content") or message.get("reasoning") or "\n".join(thoughts)
    text = "".join(texts)
    if not thought:
        thought, text = split_thinking(text, bare_end=not official)
    if thought or details:
        parts.append(
            ContentReasoning(
                reasoning=thought if isinstance(thought, str) else str(thought),
                internal=details or None,
                redacted=not thought,
            )
        )
    if text or not parts:
        parts.append(ContentText(text=text))
    if message.get("refusal"):
        parts = [part for part in parts if not isinstance(part, ContentText) or part.text]
        parts.append(ContentText(text=message["refusal"], refusal=True))
    audio = message.get("audio")
    if isinstance(audio, dict) and audio.get("data"):
        parts.append(ContentAudio(audio=f"data:audio/wav;base64,{audio['data']}", format="wav"))
        if audio.get("transcript") and not text:
            parts.append(ContentText(text=audio["transcript"]))
    return parts


def _chunks(raw: list[Any]) -> tuple[list[str], list[str]]:
    """Mistral's content in chunks: texts, and the texts of its thinking."""
    texts: list[str] = []
    thoughts: list[str] = []
    for chunk in raw:
        if isinstance(chunk, str):
            texts.append(chunk)
        elif chunk.get("type") == "text":
            texts.append(chunk["text"])
        elif chunk.get("type") == "thinking":
            inner = chunk["thinking"]
            thoughts += [inner] if isinstance(inner, str) else [part.get("text", "") for part in inner]
    return texts, thoughts


def split_thinking(text: str, *, bare_end: bool) -> tuple[str, str]:
    """Reasoning and answer of a text that begins with ``<think>``.

    ``bare_end``: a text with only the closing tag counts too (chat templates often write the opening one themselves).
    """
    found = _THINKING.match(text)
    if found is not None:
        return found.group(1).strip(), text[found.end() :]
    if bare_end and "</think>" in text and "<think>" not in text:
        thought, _, rest = text.partition("</think>")
        return thought.strip(), rest.lstrip()
    return "", text


def chat_usage(usage: dict[str, Any] | None) -> ModelUsage | None:
    """Token counts; input tokens read from or written to a cache are not in ``input_tokens``."""
    if not usage:
        return None
    prompt, completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    details, out = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = details.get("cached_tokens") if details else None
    if cached is None:
        cached = usage.get("prompt_cache_hit_tokens", usage.get("cached_tokens"))
    written = details.get("cache_write_tokens") if details else None
    cost = usage.get("cost")
    return ModelUsage(
        input_tokens=max(0, prompt - (cached or 0) - (written or 0)),
        output_tokens=completion,
        total_tokens=usage.get("total_tokens") or prompt + completion,
        input_tokens_cache_write=written,
        input_tokens_cache_read=cached,
        reasoning_tokens=out.get("reasoning_tokens") if out else None,
        total_cost=cost if isinstance(cost, float) else None,
    )
