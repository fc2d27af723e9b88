"""What a model's name says of the requests that it takes."""

from __future__ import annotations

import re

from proctor_provider_bedrock._args import Family

__all__ = ["arn_region", "claude_version", "model_family"]

_VENDOR = re.compile(r"(?:^|[./])(anthropic|amazon|meta|mistral|cohere|deepseek|openai|qwen)\.([a-z0-9-]+)")
_ARN_REGION = re.compile(r"arn:aws[^:]*:[a-z-]+:([a-z0-9-]+):")
_CLAUDE = re.compile(r"claude-[a-z]+-(\d+)(?:-(\d{1,2})(?!\d))?")
_CLAUDE_3 = re.compile(r"claude-(\d)(?:-(\d))?-[a-z]")


def model_family(model: str) -> Family:
    """Whose model it is: ``us.anthropic.claude...``, also inside of an ARN; ``other`` where that is not to be seen."""
    found = _VENDOR.search(model)
    if found is None:
        return "other"
    vendor, rest = found.groups()
    if vendor == "amazon":
        return "nova" if rest.startswith("nova") else "other"
    return vendor  # type: ignore[return-value]  # the pattern has the names of the type


def claude_version(model: str) -> tuple[int, int]:
    """The version of a Claude: (4, 5) of ``claude-sonnet-4-5-20250929``; (0, 0) where the name does not say."""
    found = _CLAUDE.search(model) or _CLAUDE_3.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def arn_region(model: str) -> str | None:
    """The region that an ARN names."""
    found = _ARN_REGION.match(model)
    return found[1] if found else None
