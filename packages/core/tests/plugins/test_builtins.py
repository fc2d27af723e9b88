"""What the core itself offers can be asked for and made, as a plugin's parts can."""

from __future__ import annotations

from typing import Any

import pytest

from proctor import contracts
from proctor import plugins as room
from proctor.plugins import build_args
from proctor.schema import GenerateConfig


def test_the_mock_model_answers_by_its_arguments() -> None:
    record = room.get("model_providers", "mock")
    args = build_args(record, {"latency": "0.5", "failures": "2", "failure": "rate_limit"})

    api = record.factory("model", base_url=None, api_key=None, config=GenerateConfig(), args=args)

    assert isinstance(api, contracts.ModelAPI)
    assert (args.latency, args.failures, args.failure) == (0.5, 2, "rate_limit")


@pytest.mark.parametrize(
    ("kind", "name", "base", "arguments"),
    [
        ("sandbox_providers", "local", "SandboxDriver", ()),
        ("log_stores", "file", "LogStore", ()),
        ("log_stores", "memory", "LogStore", ()),
        ("displays", "none", "Display", (None,)),
        ("displays", "plain", "Display", (None,)),
        ("displays", "rich", "Display", (None,)),
    ],
)
def test_each_factory_makes_what_the_contract_says(kind: str, name: str, base: str, arguments: tuple[Any, ...]) -> None:
    record = room.get(kind, name)

    assert isinstance(record.factory(*arguments), getattr(contracts, base))
    assert record.summary
    assert room.origin(kind, name)[0] == "proctor-core"
