"""What the tests of this package share: a fake server, and models behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from proctor.concurrency import ConnectionPolicy, run_gates
from proctor.contracts import ModelAPI
from proctor.plugins import build_args
from proctor.schema import ChatMessage, ChatMessageUser, GenerateConfig, ModelOutput, ToolInfo
from proctor_provider_bedrock import hooks
from proctor_testkit import FakeBedrock

KEY = "bedrock-api-key-1f2e3d4c5b6a"
[RECORD] = hooks.proctor_model_providers()


def make_api(
    server: FakeBedrock | None, name: str = "us.amazon.nova-lite-v1:0", *, api_key: str | None = KEY, **args: Any
) -> Any:
    """The API of a model."""
    address = None if server is None else server.base_url
    made: ModelAPI = RECORD.factory(
        name, base_url=address, api_key=api_key, config=GenerateConfig(), args=build_args(RECORD, args)
    )
    return made


@pytest.fixture(autouse=True)
def _nobodys_account(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No credentials, no profile and no instance of whoever runs the tests; a region."""
    import os

    for name in list(os.environ):
        if name.startswith("AWS_") or name == "BEDROCK_BASE_URL":
            monkeypatch.delenv(name)
    nowhere = tmp_path_factory.mktemp("aws")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(nowhere / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(nowhere / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture(autouse=True)
def _fixed_connections() -> Iterator[None]:
    """A limit that no refusal moves: a hold after refusals goes by the clock, and these tests wait for none."""
    with run_gates(policy=ConnectionPolicy(adaptive=False)):
        yield


async def ask_once(
    model: ModelAPI,
    input: str | list[ChatMessage] = "What is 2 + 2?",
    tools: list[ToolInfo] | None = None,
    tool_choice: Any = "auto",
    **config: Any,
) -> ModelOutput:
    """One request, and the connection closed after it."""
    messages: list[ChatMessage] = [ChatMessageUser(content=input)] if isinstance(input, str) else input
    try:
        return await model.generate(messages, tools or [], tool_choice, GenerateConfig(**config))
    finally:
        await model.aclose()


@pytest.fixture
def server() -> Iterator[FakeBedrock]:
    """A fake Bedrock on loopback."""
    with FakeBedrock() as server:
        yield server


@pytest.fixture
def api() -> Any:
    """``api(server, "model", **args)``: the API of a model behind the server."""
    return make_api


@pytest.fixture
def ask() -> Any:
    """``await ask(api, input, tools, tool_choice, **config)``: one request of it."""
    return ask_once
