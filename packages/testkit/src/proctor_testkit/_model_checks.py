"""What all checks of model providers stand on: the model under test, and the fake server behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Protocol

import pytest

from proctor import plugins
from proctor.contracts import ModelAPI, ModelProvider
from proctor.model import ChatMessage, ChatMessageUser, GenerateConfig, Model, ModelOutput, get_model
from proctor.schema import ToolChoice, ToolInfo
from proctor_testkit._suite import Suite

__all__ = ["FakeServer", "ModelChecks"]


class FakeServer(Protocol):
    """What the suite needs of a fake server that speaks a provider's protocol on loopback.

    With the capability ``tools`` or ``reasoning`` it also has ``say(text, calls=[(name, arguments)], reasoning=text)``,
    which answers the next request so. With ``faults`` it is a ``ScriptedServer``, as the kit's own fakes are.
    """

    @property
    def base_url(self) -> str:
        """Where the provider is to send its requests."""

    @property
    def requests(self) -> Sequence[Any]:
        """The requests for a generation so far, failed ones among them."""

    def fail(self, status: int, *, headers: Mapping[str, str] | None = None) -> None:
        """Answer the next request with an error."""


class ModelChecks(Suite):
    """The fixtures and helpers; see ``ModelProviderSuite``."""

    kind = "model provider"

    model: ClassVar[str]
    model_args: ClassVar[Mapping[str, Any]] = {}
    api_key: ClassVar[str | None] = "testkit-credential-3f9a"
    reasoning_proof: ClassVar[Mapping[str, Any]] = {}
    pytestmark = pytest.mark.anyio

    @classmethod
    def component(cls) -> str:
        """The model, and the arguments it is made with."""
        args = ", ".join(f"{name}={value}" for name, value in cls.model_args.items())
        return f"{getattr(cls, 'model', super().component())}{f' ({args})' if args else ''}"

    @pytest.fixture
    def server(self) -> FakeServer | None:
        """A fake server; none for a provider that needs none."""
        return None

    @asynccontextmanager
    async def made(self, server: FakeServer | None, config: GenerateConfig | None = None) -> AsyncIterator[Model]:
        """The model under test, closed at the end."""
        address: dict[str, Any] = {} if server is None else {"base_url": server.base_url, "api_key": self.api_key}
        model = get_model(self.model, config=config or GenerateConfig(), memoize=False, **address, **self.model_args)
        try:
            yield model
        finally:
            await model.api.aclose()

    def record(self) -> ModelProvider:
        """The record that the provider's hook returned."""
        found: ModelProvider = plugins.get("model_providers", self.model.partition("/")[0])
        return found

    async def ask(self, api: ModelAPI, config: GenerateConfig | None = None) -> Any:
        """One call of the provider itself, without the core's gates and retries."""
        return await api.generate([ChatMessageUser(content="Say hello.")], [], "auto", config or GenerateConfig())

    async def converse(
        self,
        api: ModelAPI,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolInfo] = (),
        tool_choice: ToolChoice = "auto",
    ) -> ModelOutput:
        """One call of the provider itself, with tools."""
        return await api.generate(list(messages), list(tools), tool_choice, GenerateConfig())
