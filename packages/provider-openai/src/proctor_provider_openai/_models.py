"""What OpenAI's model names say about the requests that they take."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["is_reasoning", "needs_responses", "prefers_responses", "takes_sampling"]

_REASONING = re.compile(r"o\d|gpt-(?:[5-9]|\d\d)|codex|computer-use")
_CHAT = re.compile(r"gpt-[\d.]+-chat")
_RESPONSES_ONLY = re.compile(r"(?:o\d|gpt-[\d.]+)-pro|codex|deep-research|computer-use")
_EFFORT_NONE = re.compile(r"gpt-(?:5\.[1-9]|[6-9]|\d\d)")


def _plain(model: str) -> str:
    """``ft:gpt-4o:org`` is a gpt-4o, ``openai/o3`` an o3."""
    return model.removeprefix("ft:").rpartition("/")[2].lower()


@lru_cache(maxsize=256)
def is_reasoning(model: str) -> bool:
    """Whether the model thinks before it answers: o-series, gpt-5 and later, codex."""
    name = _plain(model)
    return bool(_REASONING.match(name)) and not _CHAT.match(name)


@lru_cache(maxsize=256)
def needs_responses(model: str) -> bool:
    """Whether the model is offered through the Responses API only."""
    return bool(_RESPONSES_ONLY.search(_plain(model)))


def prefers_responses(model: str) -> bool:
    """Whether the model does better through the Responses API, where its reasoning is kept between turns."""
    return needs_responses(model) or is_reasoning(model)


@lru_cache(maxsize=256)
def takes_sampling(model: str, effort: str | None) -> bool:
    """Whether temperature, top_p and the like are accepted.

    Reasoning models refuse them, except those whose reasoning can be off (gpt-5.1 and later) while it is off.
    """
    if not is_reasoning(model):
        return True
    return bool(_EFFORT_NONE.match(_plain(model))) and effort in (None, "none")
