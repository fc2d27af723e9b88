"""What the tests of this package share: a fake server, and models behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from provider_calls import ask, fixed_connections

from proctor.contracts import ModelAPI
from proctor.plugins import build_args
from proctor.schema import GenerateConfig
from proctor_provider_openai import hooks
from proctor_testkit import FakeOpenAI

__all__ = ["ask", "fixed_connections"]  # fixtures of the tests here

KEY = "sk-test-1f2e3d4c5b6a"

RECORDS = {record.name: record for record in hooks.proctor_model_providers()}


def make_api(
    server: FakeOpenAI | None, name: str = "openai/gpt-4o-mini", *, base_url: str | None = None, **args: Any
) -> Any:
    """The API of a model; ``base_url`` defaults to the server's."""
    provider, _, model = name.partition("/")
    record = RECORDS[provider]
    address = base_url if base_url is not None or server is None else server.base_url
    made: ModelAPI = record.factory(
        model, base_url=address, api_key=KEY, config=GenerateConfig(), args=build_args(record, args)
    )
    return made


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """A fake OpenAI on loopback."""
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def api() -> Any:
    """``api(server, "provider/model", **args)``: the API of a model behind the server."""
    return make_api
