"""The contract of model providers, as the test-kit has it, against a server on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from proctor_testkit import FakeOpenAI, ModelProviderSuite


class TestAcme(ModelProviderSuite):
    model = "acme/small-1"
    # Take out what does not apply, such as "tools" when the service has none: its checks are left out then.
    # "faults" needs a ScriptedServer of the test-kit, of which FakeOpenAI is one.
    capabilities = frozenset({"usage", "max_tokens", "server", "tools", "faults"})

    @pytest.fixture
    def server(self) -> Iterator[FakeOpenAI]:
        """Speaks chat completions; give your own when your server speaks otherwise."""
        with FakeOpenAI() as server:
            yield server
