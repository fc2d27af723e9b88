"""What this package offers: OpenAI, Azure, any OpenAI-compatible service, and a table of known ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from proctor.contracts import ModelProvider
from proctor.hookspecs import hookimpl
from proctor_provider_openai._args import AzureArgs, OpenAIArgs, ServiceArgs
from proctor_provider_openai._services import SERVICES, Service

if TYPE_CHECKING:
    from proctor.contracts import ModelAPI, ModelFactory
    from proctor.schema import GenerateConfig


def _lazy(factory: str, *first: str) -> ModelFactory:
    """What calls the function ``factory`` of ``_factories``, imported then; ``first`` goes before the model's name."""

    def make(name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig, args: Any) -> ModelAPI:
        from proctor_provider_openai import _factories

        make_api = getattr(_factories, factory)
        api: ModelAPI = make_api(*first, name, base_url=base_url, api_key=api_key, config=config, args=args)
        return api

    return make


def _service(service: Service) -> ModelProvider:
    return ModelProvider(
        name=service.name,
        factory=_lazy("service", service.name),
        args=ServiceArgs,
        env=tuple((name,) for name in service.env),
        summary=f"models at {service.title}, by its OpenAI-compatible API",
    )


@hookimpl
def proctor_model_providers() -> Sequence[ModelProvider]:
    """All providers of this package. Those whose variables depend on the model's name are checked by their factory."""
    return [
        ModelProvider(
            name="openai",
            factory=_lazy("openai"),
            args=OpenAIArgs,
            summary="OpenAI's models, or any server named by OPENAI_BASE_URL; openai/azure/... for Azure",
        ),
        ModelProvider(
            name="openai-api",
            factory=_lazy("generic"),
            args=ServiceArgs,
            summary="openai-api/<service>/<model>: any compatible service, by <SERVICE>_API_KEY and <SERVICE>_BASE_URL",
        ),
        ModelProvider(
            name="azureai",
            factory=_lazy("azure"),
            args=AzureArgs,
            summary="deployments on Azure OpenAI and Azure AI Foundry",
        ),
        *(_service(service) for service in SERVICES),
    ]
