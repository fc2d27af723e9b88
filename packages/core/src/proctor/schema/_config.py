"""What a model is asked for beside the messages."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from proctor.schema._base import Record

__all__ = ["GenerateConfig", "ResponseSchema"]


def _plain(schema: Any) -> Any:
    """A schema made from a type (``json_schema(list[str])``) as the dict that providers are sent."""
    return schema.to_dict() if isinstance(schema, Record) else schema


class ResponseSchema(Record):
    """Structured output: the reply must be JSON that fits ``json_schema``."""

    name: str
    json_schema: Annotated[dict[str, Any], BeforeValidator(_plain)]
    description: str | None = None
    strict: bool | None = None


class GenerateConfig(Record):
    """Settings of a generation. ``None`` = not said at this level (provider < model < task < eval < call)."""

    max_retries: int | None = None
    timeout: float | None = None
    attempt_timeout: float | None = None
    stream_idle_timeout: float | None = None
    max_connections: int | None = None
    adaptive_connections: Any = None
    system_message: str | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    temperature: float | None = None
    stop_seqs: list[str] | None = None
    best_of: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[int, float] | None = None
    seed: int | None = None
    top_k: int | None = None
    num_choices: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    prompt_logprobs: int | None = None
    parallel_tool_calls: bool | None = None
    internal_tools: bool | None = None
    max_tool_output: int | None = None
    cache_prompt: Any = None
    fallback_models: Any = None
    fail_on_refusal: Any = None
    verbosity: str | None = None
    effort: str | None = None
    reasoning_effort: str | None = None
    reasoning_mode: Any = None
    reasoning_tokens: int | None = None
    reasoning_summary: str | None = None
    reasoning_history: Literal["none", "all", "last", "auto"] | None = None
    response_schema: ResponseSchema | None = None
    extra_headers: dict[str, str] | None = None
    extra_body: dict[str, Any] | None = None
    modalities: Any = None
    cache: Any = None
    batch: Any = None

    def merge(self, other: GenerateConfig) -> GenerateConfig:
        """These settings with those that ``other`` says laid over them."""
        said = {name: value for name, value in other if value is not None}
        return self.model_copy(update=said) if said else self
