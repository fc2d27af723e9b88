"""From the chunks of a stream to a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.model import parse_tool_call
from proctor.schema import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Content,
    ContentReasoning,
    ContentText,
    Logprob,
    Logprobs,
    ModelUsage,
    StopReason,
    ToolInfo,
    TopLogprob,
)

__all__ = ["LlamaError", "Reply"]


class LlamaError(Exception):
    """llama.cpp refused a request or failed at it; ``kind`` is its own word, such as ``invalid_request_error``."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Reply:
    """One reply as it grows. Feed it chunks, then ask for ``choice``, ``usage`` and ``body``.

    Attributes:
        too_long: what llama.cpp said when the prompt does not fit into the context, else None.
    """

    def __init__(self) -> None:
        self.too_long: str | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._logprobs: list[dict[str, Any]] = []
        self._finish = ""
        self._usage: dict[str, Any] = {}
        self._last: dict[str, Any] = {}

    def add(self, chunk: dict[str, Any]) -> None:
        """Take one chunk.

        Raises:
            LlamaError: if the chunk is an error other than a prompt that is too long.
        """
        if "error" in chunk:
            error = chunk["error"]
            message, kind = str(error.get("message", error)), str(error.get("type", ""))
            self._last = chunk
            if kind != "exceed_context_size_error":
                raise LlamaError(message, kind)
            self.too_long = message
            self._finish = "length"
            return
        if "usage" in chunk:
            self._usage = chunk["usage"]
            self._last = chunk
        for choice in chunk.get("choices", ()):
            self._finish = choice.get("finish_reason") or self._finish
            self._grow(choice.get("delta") or {})
            if choice.get("logprobs"):
                self._logprobs += choice["logprobs"].get("content") or ()

    def _grow(self, delta: dict[str, Any]) -> None:
        if delta.get("content"):
            self._text.append(delta["content"])
        if delta.get("reasoning_content"):
            self._reasoning.append(delta["reasoning_content"])
        for part in delta.get("tool_calls") or ():
            call = self._calls.setdefault(part.get("index", 0), {"id": "", "name": "", "arguments": ""})
            function = part.get("function") or {}
            call["id"] += part.get("id") or ""
            call["name"] += function.get("name") or ""
            call["arguments"] += function.get("arguments") or ""

    @property
    def usage(self) -> ModelUsage:
        """Tokens read and written; those of the prompt that were still in memory count as read from a cache."""
        read, written = int(self._usage.get("prompt_tokens", 0)), int(self._usage.get("completion_tokens", 0))
        cached = int((self._usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0))
        return ModelUsage(
            input_tokens=read - cached,
            output_tokens=written,
            total_tokens=read + written,
            input_tokens_cache_read=cached or None,
        )

    def choice(self, model: str, max_tokens: int | None, tools: Sequence[ToolInfo] = ()) -> ChatCompletionChoice:
        """The reply as a choice.

        Args:
            model: the model's name.
            max_tokens: what was asked for; it tells a limit of the caller from a context that is full.
            tools: what the model was offered.
        """
        text: str = "".join(self._text) if self.too_long is None else self.too_long
        content: str | list[Content] = text
        if self._reasoning:
            content = [ContentReasoning(reasoning="".join(self._reasoning))]
            if text:
                content.append(ContentText(text=text))
        calls = [
            parse_tool_call(call["id"] or f"call_{number}", call["name"], call["arguments"], tools)
            for number, call in sorted(self._calls.items())
        ]
        message = ChatMessageAssistant(content=content, model=model, source="generate", tool_calls=calls or None)
        logprobs = Logprobs(content=[_logprob(token) for token in self._logprobs]) if self._logprobs else None
        return ChatCompletionChoice(message=message, stop_reason=self._stop_reason(max_tokens), logprobs=logprobs)

    def _stop_reason(self, max_tokens: int | None) -> StopReason:
        if self._finish == "length":
            asked = max_tokens is not None and int(self._usage.get("completion_tokens", 0)) >= max_tokens
            return "max_tokens" if asked else "model_length"
        if self._calls:
            return "tool_calls"
        return "stop" if self._finish == "stop" else "unknown"

    def body(self) -> dict[str, Any]:
        """The reply as one response of chat completions, for the log."""
        if "error" in self._last:
            return self._last
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for _, call in sorted(self._calls.items())
            ]
        choice: dict[str, Any] = {"index": 0, "finish_reason": self._finish, "message": message}
        if self._logprobs:
            choice["logprobs"] = {"content": self._logprobs}
        return {**self._last, "object": "chat.completion", "choices": [choice]}


def _logprob(token: dict[str, Any]) -> Logprob:
    likely = [
        TopLogprob(token=top["token"], logprob=top["logprob"], bytes=top.get("bytes"))
        for top in token.get("top_logprobs") or ()
    ]
    return Logprob(
        token=token["token"], logprob=token["logprob"], bytes=token.get("bytes"), top_logprobs=likely or None
    )
