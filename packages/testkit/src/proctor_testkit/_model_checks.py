"""What all checks of model providers stand on: the model under test, and the fake server behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Protocol

import pytest

from proctor import plugins
from proctor.contracts import ModelAPI, ModelProvider
from proctor.model import ChatMessage, ChatMessageUser, GenerateConfig, Model, ModelOutput, get_model
from proctor.schema import ToolChoice, ToolInfo, ToolParam, ToolParams
from proctor_testkit._held_server import HeldServer
from proctor_testkit._scripted_server import FakeRequest
from proctor_testkit._suite import Needed, Suite

__all__ = ["WEATHER", "FakeServer", "FakeToolServer", "ModelChecks", "leaves"]

WEATHER = ToolInfo(
    name="weather",
    description="Looks up the weather of a city.",
    parameters=ToolParams(properties={"city": ToolParam(type="string", description="Its name.")}, required=["city"]),
)


class FakeServer(Protocol):
    """What the suite needs of a fake server that speaks a provider's protocol on loopback.

    With the capability ``tools`` or ``reasoning`` it is a ``FakeToolServer``, too; with ``faults`` it is a
    ``ScriptedServer``, as the kit's own fakes are, and then it has all of this already.
    """

    @property
    def base_url(self) -> str:
        """Where the provider is to send its requests."""

    @property
    def requests(self) -> Sequence[FakeRequest]:
        """The requests for a generation so far, failed ones among them, the oldest first.

        Of each the suite reads ``body``, the JSON that came in; another object that has it does as well.
        """

    def fail(self, status: int, *, headers: Mapping[str, str] | None = None) -> None:
        """Answer the next request, and no other, with an error of this status, with these headers beside its own."""


class FakeToolServer(FakeServer, Protocol):
    """A fake server whose next answer can be told."""

    def say(
        self,
        text: str | None = None,
        *,
        calls: Sequence[tuple[str, Any]] = (),
        reasoning: str | None = None,
        **more: Any,
    ) -> None:
        """Answer the next request so; several calls are of several requests.

        Args:
            text: of the reply; None for one that only calls tools.
            calls: name and arguments (a dict) of each tool call. The server gives each an id of its own.
            reasoning: what the model thought.
            more: with ``reasoning``, what the suite's ``reasoning_proof`` has; with ``faults`` and ``usage``, what the
                service counted: ``usage={"input": 2, "output": 7}``.
        """


class ModelChecks(Suite):
    """The fixtures and helpers; see ``ModelProviderSuite``."""

    kind = "model provider"
    needed = (
        Needed("model", 'model = "acme/small-1"'),
        Needed("server", "a fixture that yields a FakeOpenAI, or your own ScriptedServer", capability="server"),
    )

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
    async def made(
        self, server: HeldServer | FakeServer | None, config: GenerateConfig | None = None
    ) -> AsyncIterator[Model]:
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

    def body(self, server: FakeServer, number: int) -> Any:
        """The body of a request that ``server`` was asked, as the provider wrote it."""
        assert number < len(server.requests), (
            f"the provider sent {len(server.requests)} requests that are in `server.requests`, not {number + 1}"
        )
        request = server.requests[number]
        assert hasattr(request, "body"), (
            "each element of the fake server's `requests` has a `body`, the JSON of the request as it came in "
            f"(proctor_testkit.FakeRequest is such an element), but this is a {type(request).__name__}: {request!r}"
        )
        return request.body

    def keeps_secret(self, text: str, where: str) -> None:
        """The credential is not in ``text``, which is what ``where`` says."""
        assert not self.api_key or self.api_key not in text, f"the credential is in {where}: it must be shown nowhere"


def leaves(value: Any) -> Iterator[Any]:
    """All texts, numbers and names of members of a body."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value
