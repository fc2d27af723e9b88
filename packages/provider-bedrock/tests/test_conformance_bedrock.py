"""The conformance kit, on Converse and on ConverseStream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from proctor_testkit import FakeBedrock, ModelProviderSuite


class TestConverse(ModelProviderSuite):
    model = "bedrock/us.amazon.nova-lite-v1:0"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"usage", "max_tokens", "server", "tools", "reasoning", "retry_after_date", "faults"}
    )
    reasoning_proof: ClassVar[dict[str, object]] = {"signature": "c2lnbmVk"}

    @pytest.fixture
    def server(self) -> Iterator[FakeBedrock]:
        with FakeBedrock() as server:
            yield server


class TestConverseStream(TestConverse):
    model_args: ClassVar[dict[str, object]] = {"stream": True}


class TestInferenceProfile(TestConverse):
    model = (
        "bedrock/arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
    )
