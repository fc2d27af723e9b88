"""Where a model's requests go and with what credential, found without importing any SDK."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlencode, urlsplit

import anyio.to_thread

from proctor.contracts import ModelAPI, PrerequisiteError, UsageError
from proctor.model import check_base_url
from proctor.schema import redact_url
from proctor_provider_openai._args import AzureArgs, OpenAIArgs
from proctor_provider_openai._services import SERVICES, Quirks, Service, service_prefix

__all__ = ["Endpoint", "azure_endpoint", "fresh_token", "generic_endpoint", "openai_endpoint", "service_endpoint"]

TokenProvider: TypeAlias = Callable[[], str | Awaitable[str]]

OPENAI = "https://api.openai.com/v1"
AZURE_API_VERSION = "2025-04-01-preview"
FOUNDRY_API_VERSION = "2024-05-01-preview"
AZURE_KEYS = ("AZUREAI_OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZUREAI_API_KEY")
AZURE_URLS = (
    "AZUREAI_OPENAI_BASE_URL",
    "AZURE_OPENAI_BASE_URL",
    "AZURE_OPENAI_ENDPOINT",
    "AZUREAI_BASE_URL",
)
AZURE_VERSIONS = ("AZUREAI_OPENAI_API_VERSION", "AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION")
AZURE_TOKENS = ("AZUREAI_OPENAI_AD_TOKEN", "AZURE_OPENAI_AD_TOKEN")
AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address with its credential.

    Attributes:
        base_url: the address, without a trailing slash.
        model: the name that goes into requests.
        chat: the URL of chat completions.
        responses: the URL of the Responses API.
        official: whether this is OpenAI itself (or OpenAI's models on Azure), with the rules that hold only there.
        quirks: where the service deviates.
        headers: the headers of every request; they may hold the credential and never show.
        credential: the secret itself, to be cut out of messages.
        token: gives a fresh bearer token for every request, where there is no key.
    """

    base_url: str
    model: str
    chat: str
    responses: str
    official: bool = False
    quirks: Quirks = field(default_factory=Quirks)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    credential: str | None = field(default=None, repr=False)
    token: TokenProvider | None = field(default=None, repr=False)

    def connection_key(self, provider: str) -> str:
        """What shares one gate: provider, credential and address."""
        return ModelAPI.hash_key(provider, self.credential or str(id(self.token or "")), self.base_url)


def _first(names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


_CALLS = ("/chat/completions", "/responses", "/completions")


def _address(given: str | None, names: tuple[str, ...], default: str | None = None) -> str | None:
    """The address to use, without a slash at its end: the one that was given, one of the environment, or ``default``.

    Raises:
        UsageError: if it is none that calls can be made from.
    """
    said = [("--model-base-url", given), *((name, os.environ.get(name)) for name in names)]
    source, address = next(((source, value) for source, value in said if value), ("", default))
    if not address:
        return None
    check_base_url(address, source, ("http", "https"))
    plain = address.rstrip("/")
    if "?" in plain or "#" in plain:
        raise UsageError(f"{source}={redact_url(address)!r} has a query: give the address without it")
    for call in _CALLS:
        if plain.endswith(call):
            raise UsageError(f"{source}={redact_url(address)!r} is the address of one call: leave {call} off")
    return plain


def _bearer(key: str | None) -> dict[str, str]:
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return headers


def _plain(base_url: str, model: str, key: str | None, quirks: Quirks, extra: Mapping[str, str]) -> Endpoint:
    return Endpoint(
        base_url,
        model,
        f"{base_url}/chat/completions",
        f"{base_url}/responses",
        quirks=quirks,
        headers={**_bearer(key), **extra},
        credential=key,
    )


def openai_endpoint(model: str, base_url: str | None, api_key: str | None, args: OpenAIArgs) -> Endpoint:
    """OpenAI, or whatever ``OPENAI_BASE_URL`` (or ``--model-base-url``) stands for."""
    key = api_key or os.environ.get("OPENAI_API_KEY")
    if not key:
        raise PrerequisiteError(
            f"openai/{model} needs OPENAI_API_KEY in the environment (or in a .env file): export OPENAI_API_KEY=... "
            "(any text will do for a server of your own that asks for none)"
        )
    address = _address(base_url, ("OPENAI_BASE_URL",), OPENAI) or OPENAI
    extra = {
        "OpenAI-Organization": args.organization or os.environ.get("OPENAI_ORG_ID"),
        "OpenAI-Project": args.project or os.environ.get("OPENAI_PROJECT_ID"),
    }
    official = urlsplit(address).hostname in ("api.openai.com", "eu.api.openai.com", "us.api.openai.com")
    plain = _plain(address, model, key, Quirks(), {name: value for name, value in extra.items() if value})
    return Endpoint(
        plain.base_url,
        model,
        plain.chat,
        plain.responses,
        official,
        Quirks() if official else Quirks(extras=frozenset({"top_k"}), video=True),
        plain.headers,
        key,
    )


def service_endpoint(service: Service, model: str, base_url: str | None, api_key: str | None) -> Endpoint:
    """A service of the table."""
    key = api_key or _first(service.env) or os.environ.get(f"{service_prefix(service.name)}_API_KEY")
    if not key and service.env:
        raise PrerequisiteError(
            f"{service.name}/{model} needs {' or '.join(service.env)} in the environment (or in a .env file): "
            f"export {service.env[0]}=..."
        )
    address = _address(base_url, (service.base_env,), service.base_url)
    if not address:
        raise PrerequisiteError(
            f"{service.name}/{model}: say where {service.title} is: export {service.base_env}=https://... "
            "or --model-base-url"
        )
    return _plain(address, model, key, service.quirks, {})


def generic_endpoint(name: str, base_url: str | None, api_key: str | None) -> Endpoint:
    """``openai-api/<service>/<model>``: any service, from ``<SERVICE>_API_KEY`` and ``<SERVICE>_BASE_URL``."""
    label, slash, model = name.partition("/")
    if not (slash and label and model):
        raise PrerequisiteError(
            f"openai-api/{name}: write openai-api/<service>/<model>, for example openai-api/together/llama-3, and set "
            "<SERVICE>_API_KEY and <SERVICE>_BASE_URL"
        )
    prefix = service_prefix(label)
    known = next((service for service in SERVICES if service.name == label.lower().replace("_", "-")), None)
    key = api_key or os.environ.get(f"{prefix}_API_KEY") or (_first(known.env) if known else None)
    address = _address(base_url, (f"{prefix}_BASE_URL",), known.base_url if known else None)
    missing = [f"{prefix}_BASE_URL"] if not address else []
    if not key and (known is None or known.env):
        missing.insert(0, f"{prefix}_API_KEY")
    if missing or address is None:
        raise PrerequisiteError(
            f"openai-api/{name} needs {' and '.join(missing)} in the environment (or in a .env file): "
            f"export {' '.join(f'{name}=...' for name in missing)}"
        )
    return _plain(address, model, key, known.quirks if known else Quirks(extras=frozenset({"top_k"}), video=True), {})


def azure_endpoint(model: str, base_url: str | None, api_key: str | None, args: AzureArgs | OpenAIArgs) -> Endpoint:
    """A deployment on Azure: by key, by token, or by the identity that azure-identity finds."""
    address = _address(base_url, AZURE_URLS)
    if not address:
        raise PrerequisiteError(
            f"azureai/{model}: say where the resource is: export AZUREAI_OPENAI_BASE_URL=https://NAME.openai.azure.com "
            "(or AZURE_OPENAI_ENDPOINT, or --model-base-url)"
        )
    key = api_key or _first(AZURE_KEYS)
    token = None if key else _azure_token(model, args.azure_ad_token_provider)
    headers = {"Content-Type": "application/json", **({"api-key": key} if key else {})}
    chat, responses = _azure_urls(address, model, args.api_version or _first(AZURE_VERSIONS))
    foundry = address.endswith("/models")
    quirks = Quirks() if not foundry else Quirks(extras=frozenset({"top_k"}))
    return Endpoint(address, model, chat, responses, not foundry, quirks, headers, key, token)


def _azure_urls(address: str, model: str, version: str | None) -> tuple[str, str]:
    if address.endswith("/v1"):  # the version 1 API: as OpenAI's own, without api-version unless one is said
        query = f"?{urlencode({'api-version': version})}" if version else ""
        return f"{address}/chat/completions{query}", f"{address}/responses{query}"
    if address.endswith("/models"):  # models that are not OpenAI's, on Azure AI Foundry
        query = f"?{urlencode({'api-version': version or FOUNDRY_API_VERSION})}"
        return f"{address}/chat/completions{query}", f"{address}/responses{query}"
    root = address if address.endswith("/openai") else f"{address}/openai"
    query = f"?{urlencode({'api-version': version or AZURE_API_VERSION})}"
    return f"{root}/deployments/{model}/chat/completions{query}", f"{root}/responses{query}"


def _azure_token(model: str, provider: TokenProvider | None) -> TokenProvider:
    if provider is not None:
        return provider
    fixed = _first(AZURE_TOKENS)
    if fixed is not None:
        return lambda: fixed
    try:
        identity = importlib.import_module("azure.identity")  # an extra; its types are not there to check
    except ImportError:
        raise PrerequisiteError(
            f"azureai/{model} needs AZUREAI_OPENAI_API_KEY (or AZURE_OPENAI_API_KEY) in the environment, or for "
            "Microsoft Entra the identity package: pip install 'proctor-provider-openai[azure]'"
        ) from None
    found: Callable[[], str] = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), AZURE_SCOPE)
    return lambda: anyio.to_thread.run_sync(found)  # it may ask a server, or a program


async def fresh_token(provider: TokenProvider) -> str:
    """A bearer token from ``provider``."""
    token = provider()
    return await token if inspect.isawaitable(token) else token
