"""What ``-M`` accepts for these providers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["AzureArgs", "OpenAIArgs", "ServiceArgs"]


@dataclass
class ServiceArgs:
    """Arguments of an OpenAI-compatible service."""

    responses_api: bool | None = field(
        default=None, metadata={"help": "use the Responses API instead of chat completions (default: by model)"}
    )
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = field(
        default=None, metadata={"help": "the request field that limits the reply, where the service's default is wrong"}
    )
    emulate_reasoning: bool = field(default=False, metadata={"help": "send earlier reasoning back as <think> text"})


@dataclass
class OpenAIArgs(ServiceArgs):
    """Arguments of OpenAI's own models."""

    responses_store: bool = field(
        default=False, metadata={"help": "let the service keep responses; reasoning is replayed encrypted either way"}
    )
    service_tier: str | None = field(default=None, metadata={"help": "auto, default, flex or priority"})
    user: str | None = field(default=None, metadata={"help": "a stable identifier of the end user"})
    safety_identifier: str | None = field(
        default=None, metadata={"help": "a stable identifier for the service's safety checks"}
    )
    organization: str | None = field(
        default=None, metadata={"help": "the organisation that is billed (else OPENAI_ORG_ID)"}
    )
    project: str | None = field(default=None, metadata={"help": "the project that is billed (else OPENAI_PROJECT_ID)"})
    api_version: str | None = field(default=None, metadata={"help": "the api-version, for openai/azure/..."})
    azure_ad_token_provider: Any = field(
        default=None,
        metadata={
            "help": "a function, perhaps async, that gives a Microsoft Entra token, for openai/azure/... (Python only)"
        },
    )


@dataclass
class AzureArgs(ServiceArgs):
    """Arguments of deployments on Azure."""

    responses_store: bool = field(
        default=False, metadata={"help": "let the service keep responses; reasoning is replayed encrypted either way"}
    )
    api_version: str | None = field(default=None, metadata={"help": "the api-version of the service"})
    azure_ad_token_provider: Any = field(
        default=None, metadata={"help": "a function, perhaps async, that returns a Microsoft Entra token (Python only)"}
    )
