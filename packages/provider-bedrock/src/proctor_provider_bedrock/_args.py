"""What ``-M`` accepts for models on Bedrock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["BedrockArgs", "Family"]

Family = Literal["anthropic", "nova", "meta", "mistral", "cohere", "deepseek", "openai", "qwen", "other"]
"""Whose model it is, where requests differ by that."""


@dataclass
class BedrockArgs:
    """Arguments of a model on Bedrock."""

    region: str | None = field(
        default=None,
        metadata={"help": "the AWS region (else that of an ARN, AWS_REGION, AWS_DEFAULT_REGION or the profile)"},
    )
    profile: str | None = field(default=None, metadata={"help": "the profile of ~/.aws/config (else AWS_PROFILE)"})
    family: Family | None = field(
        default=None, metadata={"help": "whose model it is, where the name of an ARN does not say"}
    )
    stream: bool | None = field(
        default=None, metadata={"help": "use ConverseStream (default: for reasoning and replies over 8192 tokens)"}
    )
    read_timeout: float = field(
        default=3600.0, metadata={"help": "seconds of silence after which the SDK gives up; mind --attempt-timeout too"}
    )
    connect_timeout: float = field(default=20.0, metadata={"help": "seconds for a connection"})
    guardrail_identifier: str | None = field(default=None, metadata={"help": "the id or ARN of a guardrail"})
    guardrail_version: str = field(default="DRAFT", metadata={"help": "the guardrail's version"})
    guardrail_trace: Literal["enabled", "disabled", "enabled_full"] = field(
        default="enabled", metadata={"help": "whether replies say what the guardrail found"}
    )
    structured_output: Literal["native", "tool"] = field(
        default="native",
        metadata={"help": "a response schema goes by outputConfig, or as a tool for models that know no outputConfig"},
    )
    performance: Literal["standard", "optimized"] | None = field(
        default=None, metadata={"help": "the latency that performanceConfig asks for"}
    )
    service_tier: Literal["default", "priority", "flex", "reserved"] | None = field(
        default=None, metadata={"help": "the tier of the service"}
    )
