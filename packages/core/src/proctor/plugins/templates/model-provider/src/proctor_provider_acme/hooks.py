"""What this package offers. Importing it is cheap: the HTTP library comes with the first model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from proctor.contracts import ModelProvider
from proctor.hookspecs import hookimpl

if TYPE_CHECKING:
    from proctor.contracts import ModelAPI
    from proctor.schema import GenerateConfig


def _make(name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig, args: Any) -> ModelAPI:
    from proctor_provider_acme._api import AcmeAPI

    return AcmeAPI(name, base_url=base_url, api_key=api_key, config=config)


@hookimpl
def proctor_model_providers() -> Sequence[ModelProvider]:
    """One provider: the model is what follows the slash."""
    return [ModelProvider(name="acme", factory=_make, env=(("ACME_API_KEY",),), summary="Acme's models: acme/small-1")]
