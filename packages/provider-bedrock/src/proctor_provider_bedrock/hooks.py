"""What this package offers: models on Amazon Bedrock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from proctor.contracts import ModelProvider
from proctor.hookspecs import hookimpl
from proctor_provider_bedrock._args import BedrockArgs

if TYPE_CHECKING:
    from proctor.contracts import ModelAPI
    from proctor.schema import GenerateConfig


def _make(name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig, args: Any) -> ModelAPI:
    from proctor_provider_bedrock._api import BedrockAPI

    return BedrockAPI(name, base_url=base_url, api_key=api_key, args=args)


@hookimpl
def proctor_model_providers() -> Sequence[ModelProvider]:
    """One provider. The SDK finds credentials by itself, so none are named here; the factory checks that there are."""
    return [
        ModelProvider(
            name="bedrock",
            factory=_make,
            args=BedrockArgs,
            summary="models on Amazon Bedrock by their id, inference profile or ARN: bedrock/us.amazon.nova-lite-v1:0",
        )
    ]
