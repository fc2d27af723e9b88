"""Cache points: where Bedrock remembers the beginning of a prompt."""

from __future__ import annotations

from typing import Any

from proctor.schema import GenerateConfig
from proctor_provider_bedrock._args import Family

__all__ = ["add_cache_points"]

_POINT = {"cachePoint": {"type": "default"}}


def add_cache_points(request: dict[str, Any], config: GenerateConfig, family: Family) -> None:
    """Mark the ends of tools (Claude's only), system and the last message, when ``cache_prompt`` asks for it.

    ``auto`` asks for it where there are tools, since such prompts grow from call to call. Other models than Claude and
    Nova know no cache points.
    """
    wanted = config.cache_prompt is True or (config.cache_prompt == "auto" and "toolConfig" in request)
    if not wanted or family not in ("anthropic", "nova"):
        return
    if "toolConfig" in request and family == "anthropic":
        request["toolConfig"]["tools"].append(_POINT)
    if "system" in request:
        request["system"].append(_POINT)
    last = request["messages"][-1]
    if last["role"] == "user":
        last["content"].append(_POINT)
