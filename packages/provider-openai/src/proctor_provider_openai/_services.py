"""The services that speak OpenAI's protocol, as data: where they are, how they authenticate, where they deviate."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["SERVICES", "Quirks", "Service", "service_prefix"]


@dataclass(frozen=True, slots=True)
class Quirks:
    """Where a service deviates from OpenAI's own chat completions.

    Attributes:
        max_tokens: the field that limits the reply.
        seed: the field of the seed.
        extras: settings of GenerateConfig that the service takes under their own names though OpenAI does not.
        unsupported: settings that the service refuses; they are left out.
        effort: how reasoning effort is said: OpenAI's ``reasoning_effort``, or a ``reasoning`` object.
        replay: the field in which earlier reasoning goes back to the model; None: it does not.
        forced_tool: the word for "some tool must be called".
        video: whether ``video_url`` parts are taken.
    """

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    seed: str = "seed"
    extras: frozenset[str] = frozenset()
    unsupported: frozenset[str] = frozenset()
    effort: Literal["reasoning_effort", "reasoning"] = "reasoning_effort"
    replay: Literal["reasoning_content", "reasoning", "reasoning_details", "think"] | None = None
    forced_tool: str = "required"
    video: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """A service.

    Attributes:
        name: the provider's name, ``<name>/<model>``, and its entry point.
        base_url: its address, or None when only the user knows it.
        env: variables that may hold the key, the first being the usual one; empty: no key is needed.
        base_env: the variable that overrides ``base_url``.
        quirks: its deviations.
        title: its name in prose.
    """

    name: str
    title: str
    base_url: str | None
    env: tuple[str, ...]
    base_env: str
    quirks: Quirks = field(default_factory=Quirks)


def service_prefix(name: str) -> str:
    """The prefix of a service's environment variables: ``hf-inference`` has ``HF_INFERENCE_API_KEY``."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


_SAMPLING = frozenset({"top_k"})
_OPEN_WEIGHTS = Quirks(extras=_SAMPLING, video=True)


def _cloud(name: str, title: str, base_url: str, quirks: Quirks = _OPEN_WEIGHTS, *, env: str | None = None) -> Service:
    prefix = service_prefix(name)
    keys = (env, f"{prefix}_API_KEY") if env else (f"{prefix}_API_KEY",)
    return Service(name, title, base_url, keys, f"{prefix}_BASE_URL", quirks)


def _local(name: str, title: str, base_url: str, replay: Literal["reasoning_content"] | None = None) -> Service:
    quirks = Quirks(extras=_SAMPLING, video=True, replay=replay)
    return Service(name, title, base_url, (), f"{service_prefix(name)}_BASE_URL", quirks)


SERVICES: tuple[Service, ...] = (
    _cloud("baseten", "Baseten", "https://inference.baseten.co/v1"),
    _cloud("cerebras", "Cerebras", "https://api.cerebras.ai/v1", Quirks(max_tokens="max_completion_tokens")),
    _cloud("dashscope", "Alibaba DashScope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
    _cloud("deepinfra", "DeepInfra", "https://api.deepinfra.com/v1/openai"),
    _cloud(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com/v1",
        Quirks(unsupported=frozenset({"seed", "parallel_tool_calls"}), replay="reasoning_content"),
    ),
    _cloud("fireworks", "Fireworks AI", "https://api.fireworks.ai/inference/v1"),
    _cloud("grok", "xAI", "https://api.x.ai/v1", Quirks(replay="reasoning_content"), env="XAI_API_KEY"),
    _cloud("groq", "Groq", "https://api.groq.com/openai/v1", Quirks(max_tokens="max_completion_tokens")),
    _cloud("hf-inference-providers", "Hugging Face", "https://router.huggingface.co/v1", env="HF_TOKEN"),
    _cloud("hyperbolic", "Hyperbolic", "https://api.hyperbolic.xyz/v1"),
    _cloud("minimax", "MiniMax", "https://api.minimax.io/v1"),
    _cloud(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        Quirks(
            seed="random_seed", forced_tool="any", unsupported=frozenset({"logprobs", "top_logprobs", "logit_bias"})
        ),
    ),
    _cloud("moonshot", "Moonshot AI", "https://api.moonshot.ai/v1", Quirks(replay="reasoning_content")),
    _cloud("nebius", "Nebius", "https://api.tokenfactory.nebius.com/v1"),
    _cloud("novita", "Novita", "https://api.novita.ai/v3/openai"),
    _cloud("nvidia", "NVIDIA", "https://integrate.api.nvidia.com/v1"),
    _cloud(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        Quirks(extras=_SAMPLING, effort="reasoning", replay="reasoning_details", video=True),
    ),
    _cloud(
        "perplexity",
        "Perplexity",
        "https://api.perplexity.ai",
        Quirks(extras=_SAMPLING, unsupported=frozenset({"seed", "logprobs", "top_logprobs", "parallel_tool_calls"})),
    ),
    _cloud("sambanova", "SambaNova", "https://api.sambanova.ai/v1"),
    _cloud("siliconflow", "SiliconFlow", "https://api.siliconflow.com/v1"),
    _cloud("together", "Together AI", "https://api.together.xyz/v1"),
    _cloud("zai", "Z.ai", "https://api.z.ai/api/paas/v4", Quirks(replay="reasoning_content")),
    _local("lm-studio", "LM Studio", "http://localhost:1234/v1"),
    _local("llama-cpp-server", "llama.cpp's server", "http://localhost:8080/v1", "reasoning_content"),
    _local("ollama", "Ollama", "http://localhost:11434/v1"),
    _local("sglang", "SGLang", "http://localhost:30000/v1", "reasoning_content"),
    _local("vllm", "vLLM", "http://localhost:8000/v1", "reasoning_content"),
)
"""Every service has an entry point of its name in pyproject.toml (a test compares the two)."""
