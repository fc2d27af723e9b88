"""Makes models: called when one is asked for, not before."""

from __future__ import annotations

from proctor.contracts import PrerequisiteError
from proctor.schema import GenerateConfig
from proctor_provider_openai._api import OpenAIAPI
from proctor_provider_openai._args import AzureArgs, OpenAIArgs, ServiceArgs
from proctor_provider_openai._endpoint import azure_endpoint, generic_endpoint, openai_endpoint, service_endpoint
from proctor_provider_openai._services import SERVICES

__all__ = ["azure", "generic", "openai", "service"]


def openai(
    name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig, args: OpenAIArgs
) -> OpenAIAPI:
    """``openai/<model>``, and ``openai/azure/<deployment>``."""
    label, slash, deployment = name.partition("/")
    if label == "azure" and slash:
        return OpenAIAPI("azureai", azure_endpoint(deployment, base_url, api_key, args), config, args)
    return OpenAIAPI("openai", openai_endpoint(name, base_url, api_key, args), config, args)


def azure(
    name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig, args: AzureArgs
) -> OpenAIAPI:
    """``azureai/<deployment>``."""
    return OpenAIAPI("azureai", azure_endpoint(name, base_url, api_key, args), config, args)


def generic(
    name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig, args: ServiceArgs
) -> OpenAIAPI:
    """``openai-api/<service>/<model>``."""
    endpoint = generic_endpoint(name, base_url, api_key)
    return OpenAIAPI(f"openai-api/{name.partition('/')[0]}", endpoint, config, args)


def service(
    provider: str, name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig, args: ServiceArgs
) -> OpenAIAPI:
    """``<provider>/<model>`` of the table of services."""
    found = next((known for known in SERVICES if known.name == provider), None)
    if found is None:
        raise PrerequisiteError(f"no service is named {provider!r}; try openai-api/{provider}/{name}")
    return OpenAIAPI(provider, service_endpoint(found, name, base_url, api_key), config, args)
