"""What this package offers: models in GGUF files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from proctor.contracts import ModelProvider
from proctor.hookspecs import hookimpl
from proctor_provider_llamacpp._args import DEFAULT_SLOTS, LlamaArgs

if TYPE_CHECKING:
    from proctor.contracts import ModelAPI
    from proctor.schema import GenerateConfig


def _make(name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig, args: Any) -> ModelAPI:
    from proctor_provider_llamacpp._api import LlamaAPI

    return LlamaAPI(name, base_url=base_url, config=config, args=args)


@hookimpl
def proctor_model_providers() -> Sequence[ModelProvider]:
    """One provider: the model is a name that this package knows, or a file."""
    return [
        ModelProvider(
            name="llamacpp",
            factory=_make,
            args=LlamaArgs,
            max_connections=DEFAULT_SLOTS,
            adaptive=False,
            summary="GGUF models in this process: llamacpp/smollm2-135m, llamacpp//path/to/model.gguf",
        )
    ]
