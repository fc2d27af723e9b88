"""What the tests of a provider do with its API: fixtures for their ``conftest.py``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from proctor.concurrency import ConnectionPolicy, run_gates
from proctor.contracts import ModelAPI
from proctor.schema import ChatMessage, ChatMessageUser, GenerateConfig, ModelOutput, ToolInfo

__all__ = ["ask", "ask_once", "fixed_connections"]


@pytest.fixture(autouse=True)
def fixed_connections() -> Iterator[None]:
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
def ask() -> Any:
    """``await ask(api, input, tools, tool_choice, **config)``: one request of it."""
    return ask_once
