"""What the tests of this package share: a fake server, and models behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from provider_calls import ask, fixed_connections

from proctor.contracts import ModelAPI
from proctor.plugins import build_args
from proctor.schema import GenerateConfig
from proctor_provider_bedrock import hooks
from proctor_testkit import FakeBedrock

__all__ = ["ask", "fixed_connections"]  # fixtures of the tests here

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


@pytest.fixture
def server() -> Iterator[FakeBedrock]:
    """A fake Bedrock on loopback."""
    with FakeBedrock() as server:
        yield server


@pytest.fixture
def api() -> Any:
    """``api(server, "model", **args)``: the API of a model behind the server."""
    return make_api
