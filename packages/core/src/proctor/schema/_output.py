"""What a model gave back, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

from pydantic import BeforeValidator, Field, model_validator

from proctor.schema._base import Record, assembled
from proctor.schema._message import ChatMessageAssistant

__all__ = [
    "ChatCompletionChoice",
    "Logprob",
    "Logprobs",
    "ModelCall",
    "ModelOutput",
    "ModelUsage",
    "StopReason",
    "TopLogprob",
    "add_usage",
]

_Reason: TypeAlias = Literal["stop", "max_tokens", "model_length", "tool_calls", "content_filter", "unknown"]
_REASONS = frozenset(get_args(_Reason))

StopReason: TypeAlias = Annotated[
    _Reason,
    BeforeValidator(lambda reason: "max_tokens" if reason == "length" else reason),  # written so in 2024
]


# What not all providers say.
_UNSURE = ("input_tokens_cache_write", "input_tokens_cache_read", "reasoning_tokens", "total_cost")


class ModelUsage(Record):
    """Tokens used, and dollars where the price is known. ``input_tokens`` excludes those read from a cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    input_tokens_cache_write: int | None = None
    input_tokens_cache_read: int | None = None
    reasoning_tokens: int | None = None
    total_cost: float | None = None

    @property
    def all_input_tokens(self) -> int:
        """Tokens that went in, those from and into a cache included."""
        return self.input_tokens + (self.input_tokens_cache_read or 0) + (self.input_tokens_cache_write or 0)

    def __add__(self, other: ModelUsage) -> ModelUsage:
        return ModelUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            input_tokens_cache_write=_sum(self.input_tokens_cache_write, other.input_tokens_cache_write),
            input_tokens_cache_read=_sum(self.input_tokens_cache_read, other.input_tokens_cache_read),
            reasoning_tokens=_sum(self.reasoning_tokens, other.reasoning_tokens),
            total_cost=_sum(self.total_cost, other.total_cost),
        )

    def accumulate(self, other: ModelUsage) -> ModelUsage:
        """Add ``other`` in place and return the sum (cheap enough for totals over many samples)."""
        total, more = self.__dict__, other.__dict__  # pydantic's attribute setter costs ten times the sum
        total["input_tokens"] += more["input_tokens"]
        total["output_tokens"] += more["output_tokens"]
        total["total_tokens"] += more["total_tokens"]
        for name in _UNSURE:
            if more[name] is not None:
                total[name] = _sum(total[name], more[name])
        return self


def add_usage(totals: dict[str, ModelUsage], used: Mapping[str, ModelUsage]) -> None:
    """Add what was used to totals by the same names, in place: nobody else may hold the records in ``totals``."""
    for name, usage in used.items():
        known = totals.get(name)
        totals[name] = ModelUsage() + usage if known is None else known.accumulate(usage)


_N = TypeVar("_N", int, float)


def _sum(a: _N | None, b: _N | None) -> _N | None:
    return b if a is None else a if b is None else a + b


class TopLogprob(Record):
    """A token that was likely at some position; ``logprob`` is a natural logarithm."""

    token: str
    logprob: float
    bytes: list[int] | None = None


class Logprob(TopLogprob):
    """A token that was produced, and its likely alternatives."""

    top_logprobs: list[TopLogprob] | None = None


class Logprobs(Record):
    """Log probabilities of the tokens of a choice, in order."""

    content: list[Logprob] = Field(default_factory=list)


class ChatCompletionChoice(Record):
    """One of the replies to a request."""

    message: ChatMessageAssistant
    stop_reason: StopReason = "unknown"
    stop_details: dict[str, Any] | None = None
    logprobs: Logprobs | None = None
    prompt_logprobs: Any = None


class ModelCall(Record):
    """A raw request and its response, as they went over the wire (secrets and media removed)."""

    request: dict[str, Any] = Field(default_factory=dict)
    response: Any = None
    error: bool | None = None
    time: float | None = None
    call_refs: list[tuple[int, int]] | None = None
    call_key: str | None = None


class ModelOutput(Record):
    """The reply to one generate call. ``time`` is in seconds."""

    model: str = ""
    choices: list[ChatCompletionChoice] = Field(default_factory=list)
    completion: str = ""
    usage: ModelUsage | None = None
    input_context_tokens: int | None = None
    fallback: Any = None
    time: float | None = None
    metadata: dict[str, Any] | None = None
    error: str | None = None
    response_id: str | None = None

    @model_validator(mode="after")
    def _fill_completion(self) -> ModelOutput:
        if not self.completion and self.choices:
            self.completion = self.choices[0].message.text
        return self

    @property
    def empty(self) -> bool:
        """Whether there is no choice at all."""
        return not self.choices

    @property
    def choice(self) -> ChatCompletionChoice:
        """The first choice."""
        return self.choices[0]

    @property
    def message(self) -> ChatMessageAssistant:
        """The message of the first choice."""
        return self.choices[0].message

    @property
    def stop_reason(self) -> StopReason:
        """Why the first choice ended (``unknown`` without one)."""
        choices = self.choices
        return choices[0].stop_reason if choices else "unknown"

    @classmethod
    def from_message(
        cls, message: ChatMessageAssistant, stop_reason: StopReason = "stop", *, usage: ModelUsage | None = None
    ) -> ModelOutput:
        """An output whose only choice is ``message``."""
        choice = ChatCompletionChoice(message=message, stop_reason=stop_reason)
        return cls(model=message.model or "", choices=[choice], usage=usage)

    @classmethod
    def from_content(
        cls, model: str, content: str, stop_reason: StopReason = "stop", error: str | None = None
    ) -> ModelOutput:
        """An output with one text reply."""
        if type(content) is not str or stop_reason not in _REASONS:
            message = ChatMessageAssistant(content=content, model=model, source="generate")
            choice = ChatCompletionChoice(message=message, stop_reason=stop_reason)
            return cls(model=model, choices=[choice], error=error)
        message = assembled(
            ChatMessageAssistant,
            {
                "id": None,
                "content": content,
                "source": "generate",
                "metadata": None,
                "role": "assistant",
                "tool_calls": None,
                "model": model,
            },
        )
        choice = assembled(
            ChatCompletionChoice,
            {
                "message": message,
                "stop_reason": stop_reason,
                "stop_details": None,
                "logprobs": None,
                "prompt_logprobs": None,
            },
        )
        return cls.trusted(model=model, choices=[choice], completion=content, error=error)

    @classmethod
    def for_tool_call(cls, model: str, function: str, arguments: dict[str, Any], content: str = "") -> ModelOutput:
        """An output that calls one tool (for tests and scripted models)."""
        from proctor.schema._ids import short_uuid
        from proctor.schema._tool import ToolCall

        call = ToolCall(id=f"call_{short_uuid()}", function=function, arguments=arguments)
        message = ChatMessageAssistant(content=content, model=model, source="generate", tool_calls=[call])
        return cls.from_message(message, "tool_calls")
