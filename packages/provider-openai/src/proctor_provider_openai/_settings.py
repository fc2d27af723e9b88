"""Settings of a generation as request fields, and the ones that a service can't take."""

from __future__ import annotations

import logging
from typing import Any

from proctor.model import tool_schema
from proctor.schema import GenerateConfig, ResponseSchema, ToolChoice, ToolFunction, ToolInfo
from proctor_provider_openai._models import is_reasoning, takes_sampling
from proctor_provider_openai._services import Quirks

__all__ = [
    "chat_settings",
    "chat_tool_choice",
    "chat_tools",
    "responses_settings",
    "schema_format",
    "warn_once",
]

logger = logging.getLogger("proctor.provider.openai")

_warned: set[str] = set()
_SAMPLING = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "top_logprobs")
_SIMPLE = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "logprobs",
    "top_logprobs",
    "verbosity",
    "modalities",
)


def warn_once(message: str) -> None:
    """Log a warning, the first time it is said."""
    if message not in _warned:
        _warned.add(message)
        logger.warning(message)


def chat_settings(
    model: str, config: GenerateConfig, quirks: Quirks, official: bool, max_tokens: str
) -> dict[str, Any]:
    """The fields of a chat completion that ``config`` asks for."""
    # Only what was ever set: looking at all forty fields would cost as much as building the rest of the request.
    said = {name: value for name in config.model_fields_set if (value := getattr(config, name)) is not None}
    if not said:
        return {}
    body: dict[str, Any] = {name: said[name] for name in _SIMPLE if name in said}
    if "max_tokens" in said:
        body[max_tokens] = said["max_tokens"]
    if "stop_seqs" in said:
        body["stop"] = said["stop_seqs"]
    if "seed" in said:
        body[quirks.seed] = said["seed"]
    if "num_choices" in said:
        body["n"] = said["num_choices"]
    if "logit_bias" in said:
        body["logit_bias"] = {str(token): bias for token, bias in said["logit_bias"].items()}
    if "response_schema" in said:
        body["response_format"] = {"type": "json_schema", "json_schema": schema_format(said["response_schema"])}
    for name in quirks.extras:
        if name in said:
            body[name] = said[name]
    _add_effort(body, said, quirks)
    if official and not takes_sampling(model, config.reasoning_effort):
        _drop(body, (*_SAMPLING, "stop"), model)
    if quirks.unsupported:
        _drop(body, tuple(quirks.unsupported), model)
    return body


def _add_effort(body: dict[str, Any], said: dict[str, Any], quirks: Quirks) -> None:
    if quirks.effort == "reasoning":
        reasoning = {
            key: said[name]
            for key, name in (("effort", "reasoning_effort"), ("max_tokens", "reasoning_tokens"))
            if name in said
        }
        if reasoning:
            body["reasoning"] = reasoning
    elif "reasoning_effort" in said:
        body["reasoning_effort"] = said["reasoning_effort"]


def _drop(body: dict[str, Any], names: tuple[str, ...], model: str) -> None:
    for name in names:
        if name in body:
            del body[name]
            warn_once(f"{model} does not take {name}; it is left out")


def responses_settings(model: str, config: GenerateConfig, official: bool) -> dict[str, Any]:
    """The fields of a request to the Responses API that ``config`` asks for."""
    body: dict[str, Any] = {}
    for name, key in (("temperature", "temperature"), ("top_p", "top_p"), ("max_tokens", "max_output_tokens")):
        value = getattr(config, name)
        if value is not None:
            body[key] = value
    if official and not takes_sampling(model, config.reasoning_effort):
        _drop(body, ("temperature", "top_p"), model)
    elif config.logprobs:
        body["include"] = ["message.output_text.logprobs"]
        if config.top_logprobs is not None:
            body["top_logprobs"] = config.top_logprobs
    text: dict[str, Any] = {}
    if config.response_schema is not None:
        text["format"] = {"type": "json_schema", **schema_format(config.response_schema)}
    if config.verbosity is not None:
        text["verbosity"] = config.verbosity
    if text:
        body["text"] = text
    reasoning: dict[str, Any] = {}
    if config.reasoning_effort is not None:
        reasoning["effort"] = config.reasoning_effort
    if config.reasoning_summary is not None and config.reasoning_summary != "none":
        reasoning["summary"] = config.reasoning_summary
    if reasoning:
        body["reasoning"] = reasoning
    if is_reasoning(model) and config.reasoning_effort != "none":
        body.setdefault("include", []).append("reasoning.encrypted_content")
    for name in ("seed", "stop_seqs", "frequency_penalty", "presence_penalty", "logit_bias", "num_choices"):
        if getattr(config, name) not in (None, 1):
            warn_once(f"the Responses API does not take {name}; it is left out (-M responses_api=false for {model}?)")
    return body


def schema_format(schema: ResponseSchema) -> dict[str, Any]:
    """A structured-output schema as OpenAI writes it."""
    form: dict[str, Any] = {"name": schema.name, "schema": _plain(schema.json_schema)}
    if schema.description is not None:
        form["description"] = schema.description
    if schema.strict is not None:
        form["strict"] = schema.strict
    return form


def _plain(schema: Any) -> Any:
    return schema.model_dump(exclude_none=True) if hasattr(schema, "model_dump") else schema


def chat_tools(tools: list[ToolInfo]) -> list[dict[str, Any]]:
    """The tools of a chat completion."""
    return [{"type": "function", "function": tool_schema(tool)} for tool in tools]


def chat_tool_choice(choice: ToolChoice, forced: str) -> Any:
    """The tool choice of a chat completion; ``forced`` is the service's word for "some tool"."""
    if isinstance(choice, ToolFunction):
        return {"type": "function", "function": {"name": choice.name}}
    return forced if choice == "any" else choice
