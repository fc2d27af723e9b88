"""The contract of model providers, as the test-kit has it, against a server on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from proctor_testkit import FakeOpenAI, ModelProviderSuite


class TestAcme(ModelProviderSuite):
    model = "acme/small-1"
    capabilities = frozenset({"usage", "max_tokens", "server"})

    @pytest.fixture
    def server(self) -> Iterator[FakeOpenAI]:
        """Speaks chat completions; give your own when your server speaks otherwise."""
        with FakeOpenAI() as server:
            yield server
