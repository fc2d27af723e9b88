"""The conformance kit, on the provider's two ways of asking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from proctor_testkit import FakeOpenAI, ModelProviderSuite

ALL = frozenset({"usage", "max_tokens", "server", "tools", "retry_after_date", "retry_after_ms", "faults"})


class TestChat(ModelProviderSuite):
    model = "openai/gpt-4o-mini"
    capabilities: ClassVar[frozenset[str]] = ALL

    @pytest.fixture
    def server(self) -> Iterator[FakeOpenAI]:
        with FakeOpenAI() as server:
            yield server


class TestResponses(TestChat):
    model_args: ClassVar[dict[str, object]] = {"responses_api": True}
    capabilities: ClassVar[frozenset[str]] = ALL | {"reasoning"}


class TestService(TestChat):
    model = "together/meta/llama"


class TestAnyService(TestChat):
    model = "openai-api/acme/llama"


class TestAzure(TestChat):
    model = "azureai/gpt-4o"
