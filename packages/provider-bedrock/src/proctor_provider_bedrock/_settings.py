"""Settings of a generation as fields of Converse, and as those that only one maker's models know."""

from __future__ import annotations

import json
import logging
from typing import Any

from proctor.model import tool_schema
from proctor.schema import GenerateConfig, ResponseSchema, ToolChoice, ToolFunction, ToolInfo
from proctor_provider_bedrock._args import Family
from proctor_provider_bedrock._family import claude_version

__all__ = ["LONG_REPLY", "inference_config", "is_long", "model_fields", "output_config", "schema_tool", "tool_config"]

logger = logging.getLogger("proctor.provider.bedrock")

LONG_REPLY = 8192
"""Tokens beyond which a reply is streamed."""

_warned: set[str] = set()
_UNKNOWN: dict[str, Any] = {  # what Converse does not take, and the value that says no more than nothing does
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logit_bias": None,
    "seed": None,
    "num_choices": 1,
    "logprobs": False,
    "top_logprobs": None,
    "prompt_logprobs": None,
    "verbosity": None,
    "modalities": None,
}
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768}
_LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
_ADAPTIVE = (4, 6)  # the first Claude that decides by itself how much it thinks


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        logger.warning(message)


def _thinks(config: GenerateConfig) -> bool:
    return config.reasoning_tokens is not None or config.reasoning_effort not in (None, "none")


def is_long(config: GenerateConfig) -> bool:
    """Whether a reply may take so long that its connection had better not be silent meanwhile."""
    return _thinks(config) or (config.max_tokens or 0) > LONG_REPLY


def inference_config(config: GenerateConfig, family: Family, model: str) -> dict[str, Any]:
    """``inferenceConfig``, without what the model refuses while it thinks."""
    fields: dict[str, Any] = {
        "maxTokens": config.max_tokens,
        "temperature": config.temperature,
        "topP": config.top_p,
        "stopSequences": config.stop_seqs or None,
    }
    said = {name: value for name, value in fields.items() if value is not None}
    if family == "anthropic" and _thinks(config):
        _drop(said, ("temperature",), model)
    if family == "nova" and _LEVELS.get(config.reasoning_effort or "") == "high":
        _drop(said, ("maxTokens", "temperature", "topP"), model)
    for name, idle in _UNKNOWN.items():
        value = getattr(config, name)
        if value is not None and value != idle:
            _warn_once(f"Converse does not take {name}; it is left out")
    return said


def _drop(said: dict[str, Any], names: tuple[str, ...], model: str) -> None:
    for name in names:
        if said.pop(name, None) is not None:
            _warn_once(f"{model} does not take {name} while it reasons; it is left out")


def model_fields(config: GenerateConfig, family: Family, model: str, tools: bool, choice: ToolChoice) -> dict[str, Any]:
    """``additionalModelRequestFields``: what only this maker's models know, and whatever ``extra_body`` says."""
    fields: dict[str, Any] = {}
    if config.top_k is not None and config.top_k > 0:  # -1 stands for "no limit" elsewhere
        _add_top_k(fields, config.top_k, family, model, _thinks(config))
    if _thinks(config) or config.effort is not None:
        _add_reasoning(fields, config, family, model)
    if tools and config.parallel_tool_calls is False:
        if family == "anthropic":
            # Whole and in this place only: beside a toolChoice of Converse the service refuses it.
            fields["tool_choice"] = {**_anthropic_choice(choice), "disable_parallel_tool_use": True}
        else:
            _warn_once(f"{model} has no way to forbid parallel tool calls on Bedrock; it is left out")
    return {**fields, **(config.extra_body or {})}


def _add_top_k(fields: dict[str, Any], top_k: int, family: Family, model: str, thinks: bool) -> None:
    if family == "nova":
        fields["inferenceConfig"] = {"topK": top_k}
    elif family == "cohere":
        fields["k"] = top_k
    elif family == "mistral" or (family == "anthropic" and not thinks):
        fields["top_k"] = top_k
    else:
        _warn_once(f"{model} does not take top_k{' while it reasons' if thinks else ''}; it is left out")


def _add_reasoning(fields: dict[str, Any], config: GenerateConfig, family: Family, model: str) -> None:
    effort = config.reasoning_effort if config.reasoning_effort != "none" else None
    if family == "anthropic":
        if config.reasoning_tokens is not None:
            fields["thinking"] = {"type": "enabled", "budget_tokens": config.reasoning_tokens}
        elif effort is not None and claude_version(model) >= _ADAPTIVE:
            fields["thinking"] = {"type": "adaptive"}
            fields["output_config"] = {"effort": "low" if effort == "minimal" else effort}
        elif effort is not None:
            fields["thinking"] = {"type": "enabled", "budget_tokens": _BUDGETS[effort]}
        if config.effort is not None:
            fields["output_config"] = {"effort": config.effort}
        return
    if effort is not None and family == "nova":
        fields["reasoningConfig"] = {"type": "enabled", "maxReasoningEffort": _LEVELS[effort]}
    elif effort is not None and family == "openai":
        fields["reasoning_effort"] = _LEVELS[effort]
    for name in ("reasoning_effort", "reasoning_tokens", "effort"):
        used = name == "reasoning_effort" and family in ("nova", "openai")
        if getattr(config, name) not in (None, "none") and not used:
            _warn_once(f"{model} does not take {name} on Bedrock; it is left out (use extra_body for its own setting)")


def _anthropic_choice(choice: ToolChoice) -> dict[str, Any]:
    return {"type": "tool", "name": choice.name} if isinstance(choice, ToolFunction) else {"type": choice}


def tool_config(tools: list[ToolInfo], choice: ToolChoice, *, said_elsewhere: bool = False) -> dict[str, Any]:
    """``toolConfig``: the tools and which may be called.

    Args:
        tools: at least one.
        choice: not ``none``, which Converse has no word for.
        said_elsewhere: the choice is among the model's own fields.
    """
    config: dict[str, Any] = {"tools": [{"toolSpec": _tool(tool)} for tool in tools]}
    if said_elsewhere:
        return config
    if isinstance(choice, ToolFunction):
        config["toolChoice"] = {"tool": {"name": choice.name}}
    elif choice == "any":
        config["toolChoice"] = {"any": {}}
    return config  # `auto` is what holds when nothing is said, for models that know no choice too


def _tool(tool: ToolInfo) -> dict[str, Any]:
    described = tool_schema(tool)
    spec = {"name": tool.name, "inputSchema": {"json": described["parameters"]}}
    if tool.description.strip():
        spec["description"] = tool.description
    return spec


def output_config(schema: ResponseSchema) -> dict[str, Any]:
    """``outputConfig`` of a response schema, which Bedrock takes as text."""
    form = {"name": schema.name, "schema": json.dumps(schema.json_schema)}
    if schema.description:
        form["description"] = schema.description
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": form}}}


def schema_tool(schema: ResponseSchema) -> dict[str, Any]:
    """``toolConfig`` of a response schema for models that know no ``outputConfig``: one tool, which must be called."""
    spec = {
        "name": schema.name,
        "description": schema.description or "Give the answer in this form.",
        "inputSchema": {"json": schema.json_schema},
    }
    return {"tools": [{"toolSpec": spec}], "toolChoice": {"tool": {"name": schema.name}}}
