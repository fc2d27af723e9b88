"""Where requests go and with what credential, by provider, environment and arguments."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from proctor.contracts import ModelAPI, PrerequisiteError
from proctor.plugins import build_args, require_env
from proctor.schema import GenerateConfig, ToolInfo
from proctor_provider_openai import hooks
from proctor_provider_openai._services import SERVICES
from proctor_provider_openai._settings import _warned
from proctor_testkit import FakeOpenAI

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
RECORDS = {record.name: record for record in hooks.proctor_model_providers()}


def make(name: str, base_url: str | None = None, api_key: str | None = None, **args: Any) -> ModelAPI:
    """A model as the core makes it, credentials from the environment."""
    provider, _, model = name.partition("/")
    record = RECORDS[provider]
    if api_key is None:
        require_env(record)
    made: ModelAPI = record.factory(
        model, base_url=base_url, api_key=api_key, config=GenerateConfig(), args=build_args(record, args)
    )
    return made


def endpoint(name: str, *args: Any, **more: Any) -> Any:
    return make(name, *args, **more)._endpoint  # type: ignore[attr-defined]


def test_every_record_has_its_entry_point() -> None:
    groups = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]

    assert sorted(groups["proctor.model_providers"]) == sorted(RECORDS)
    assert set(groups["proctor.model_providers"].values()) == {"proctor_provider_openai.hooks"}
    assert len({service.name for service in SERVICES}) == len(SERVICES)


def test_hooks_import_no_sdk() -> None:
    code = (
        "import sys; import proctor_provider_openai.hooks as hooks; hooks.proctor_model_providers(); "
        "heavy = {'openai', 'aiohttp', 'httpx2', 'httpx', 'pydantic', 'anyio'} & set(sys.modules); "
        "assert not heavy, heavy"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_model_is_made_and_asked_without_the_openai_sdk() -> None:
    code = (
        "import sys, anyio\n"
        "from proctor_testkit import FakeOpenAI\n"
        "from proctor_provider_openai import hooks\n"
        "from proctor.schema import ChatMessageUser, GenerateConfig\n"
        "record = hooks.proctor_model_providers()[0]\n"
        "async def main():\n"
        "    with FakeOpenAI() as server:\n"
        "        api = record.factory('gpt-4o-mini', base_url=server.base_url, api_key='k', config=GenerateConfig(),\n"
        "                             args=record.args())\n"
        "        await api.generate([ChatMessageUser(content='?')], [], 'auto', GenerateConfig())\n"
        "        await api.aclose()\n"
        "anyio.run(main)\n"
        "assert not {'openai', 'httpx2', 'trio', 'azure'} & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_each_service_needs_its_key_and_has_its_address(monkeypatch: pytest.MonkeyPatch, service: Any) -> None:
    name = f"{service.name}/some/model"
    for variable in service.env:
        monkeypatch.delenv(variable, raising=False)
    if service.env:
        with pytest.raises(PrerequisiteError, match=service.env[0]):
            make(name)
        monkeypatch.setenv(service.env[-1], "secret-key-123")

    found = endpoint(name)

    assert found.base_url == service.base_url.rstrip("/")
    assert found.model == "some/model"
    assert found.chat == f"{found.base_url}/chat/completions"
    assert ("Authorization" in found.headers) == bool(service.env)
    monkeypatch.setenv(service.base_env, "http://127.0.0.1:1/v9/")
    assert endpoint(name).base_url == "http://127.0.0.1:1/v9"
    assert endpoint(name, "http://127.0.0.1:2").base_url == "http://127.0.0.1:2", "--model-base-url wins"


def test_openai_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PrerequisiteError, match="OPENAI_API_KEY"):
        make("openai/gpt-4o")

    monkeypatch.setenv("OPENAI_API_KEY", "secret-key-123")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    found = endpoint("openai/gpt-4o")

    assert (found.base_url, found.official) == ("https://api.openai.com/v1", True)
    assert found.headers["OpenAI-Organization"] == "org-1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert (endpoint("openai/gpt-4o").base_url, endpoint("openai/gpt-4o").official) == ("http://127.0.0.1:1/v1", False)


def test_any_service_by_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        PrerequisiteError,
        match=r"MY_HOST_API_KEY and MY_HOST_BASE_URL .*export MY_HOST_API_KEY=\.\.\. MY_HOST_BASE_URL=",
    ):
        make("openai-api/my-host/llama")
    with pytest.raises(PrerequisiteError, match="openai-api/<service>/<model>"):
        make("openai-api/llama")

    monkeypatch.setenv("MY_HOST_API_KEY", "secret-key-123")
    monkeypatch.setenv("MY_HOST_BASE_URL", "http://127.0.0.1:1/v1")
    found = endpoint("openai-api/my-host/meta/llama")

    assert (found.base_url, found.model) == ("http://127.0.0.1:1/v1", "meta/llama")


def test_a_known_service_by_the_generic_name_needs_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOGETHER_API_KEY", "secret-key-123")

    assert endpoint("openai-api/together/llama").base_url == "https://api.together.xyz/v1"


@pytest.mark.parametrize("name", ["azureai/gpt-4o", "openai/azure/gpt-4o"])
@pytest.mark.parametrize(
    ("address", "chat"),
    [
        (
            "https://res.openai.azure.com/",
            "https://res.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
        ),
        ("https://res.openai.azure.com/openai/v1/", "https://res.openai.azure.com/openai/v1/chat/completions"),
        (
            "https://res.services.ai.azure.com/models",
            "https://res.services.ai.azure.com/models/chat/completions?api-version=2024-10-21",
        ),
    ],
)
def test_azure_s_addresses(monkeypatch: pytest.MonkeyPatch, name: str, address: str, chat: str) -> None:
    monkeypatch.setenv("AZUREAI_OPENAI_API_KEY", "secret-key-123")
    monkeypatch.setenv("AZUREAI_OPENAI_BASE_URL", address)

    found = endpoint(name, **({} if address.endswith("v1/") else {"api_version": "2024-10-21"}))

    assert found.chat == chat
    assert found.headers["api-key"] == "secret-key-123"
    assert "Authorization" not in found.headers


def test_azure_without_address_or_credential_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PrerequisiteError, match="AZUREAI_OPENAI_BASE_URL"):
        make("azureai/gpt-4o")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://res.openai.azure.com")
    with pytest.raises(PrerequisiteError, match="AZUREAI_OPENAI_API_KEY"):
        make("azureai/gpt-4o")


@pytest.mark.anyio
async def test_azure_with_a_token_asks_for_it_each_time(server: FakeOpenAI, ask: Any) -> None:
    tokens = iter(["first-token", "second-token"])

    async def provide() -> str:
        return next(tokens)

    model = make("azureai/gpt-4o", server.root_url, azure_ad_token_provider=provide)

    await ask(model)
    await ask(model)

    assert [request.headers["authorization"] for request in server.requests] == [
        "Bearer first-token",
        "Bearer second-token",
    ]
    assert server.requests[0].path.startswith("/openai/deployments/gpt-4o/chat/completions?api-version=")


def test_credentials_do_not_show() -> None:
    model = make("openai/gpt-4o", api_key="secret-key-123")
    other = make("openai/gpt-4o", api_key="another-key-456")

    assert "secret-key-123" not in f"{model!r} {model} {model._endpoint!r} {model.connection_key()}"  # type: ignore[attr-defined]
    assert model.connection_key() == make("openai/gpt-4o-mini", api_key="secret-key-123").connection_key()
    assert model.connection_key() != other.connection_key()


@pytest.mark.anyio
async def test_services_get_what_they_take(server: FakeOpenAI, api: Any, ask: Any, caplog: Any) -> None:
    _warned.clear()
    tool = ToolInfo(name="f", description="d")
    settings = {"seed": 1, "max_tokens": 5, "top_k": 3, "logprobs": True}

    await ask(api(server, "mistral/m"), tools=[tool], tool_choice="any", **settings)
    await ask(api(server, "groq/m"), **settings)
    await ask(api(server, "together/m"), **settings)
    await ask(api(server, "together/m", max_tokens_field="max_completion_tokens"), max_tokens=5)

    mistral, groq, together, renamed = (request.body for request in server.requests)
    assert (mistral["random_seed"], mistral["max_tokens"], mistral["tool_choice"]) == (1, 5, "any")
    assert "logprobs" not in mistral
    assert "m does not take logprobs; it is left out" in caplog.text
    assert (groq["seed"], groq["max_completion_tokens"]) == (1, 5)
    assert together["top_k"] == 3
    assert "top_k" not in groq
    assert renamed["max_completion_tokens"] == 5


@pytest.mark.parametrize(
    ("name", "effort", "kept"),
    [
        ("gpt-4o", None, True),
        ("o3", None, False),
        ("gpt-5", None, False),
        ("gpt-5.1", None, True),
        ("gpt-5.1", "high", False),
        ("gpt-5-chat-latest", None, True),
    ],
)
def test_openai_s_reasoning_models_take_no_temperature(api: Any, name: str, effort: str | None, kept: bool) -> None:
    model = api(None, f"openai/{name}", base_url="https://api.openai.com/v1", responses_api=False)
    config = GenerateConfig(temperature=0.5, max_tokens=9, reasoning_effort=effort)

    body = model._chat_body([], [], "auto", config)

    assert ("temperature" in body) == kept
    assert body["max_completion_tokens"] == 9


def test_the_readme_lists_every_service() -> None:
    readme = (PYPROJECT.parent / "README.md").read_text(encoding="utf-8")

    for service in SERVICES:
        row = next(line for line in readme.splitlines() if line.startswith(f"| `{service.name}/...`"))
        assert service.base_url in row
        assert all(f"`{name}`" in row for name in service.env)
