from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Protocol

import anyio
import pytest

from proctor import plugins
from proctor.contracts import CallRecord, ModelAPI, ModelProvider, Retry, current_call
from proctor.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    get_model,
)
from proctor_testkit._suite import Suite, check

STOP_REASONS = {"stop", "max_tokens", "model_length", "tool_calls", "content_filter", "unknown"}


class FakeServer(Protocol):
    """What the suite needs of a fake server that speaks a provider's protocol on loopback."""

    @property
    def base_url(self) -> str:
        """Where the provider is to send its requests."""

    @property
    def requests(self) -> Sequence[Any]:
        """The requests for a generation so far, failed ones among them."""

    def fail(self, status: int, *, headers: Mapping[str, str] | None = None) -> None:
        """Answer the next request with an error."""


class ModelProviderSuite(Suite):
    """What every model provider must do. A subclass sets ``model``, and ``server`` when it talks over a network.

    Attributes:
        model: the model to test, as ``provider/model``.
        model_args: the provider's arguments, as ``-M`` would give them.
        api_key: the credential to pass to a fake server. It must be found nowhere else.
        capabilities: of ``usage``, ``max_tokens`` (a limit ends a reply) and ``server`` (the fixture gives one).

    Example::

        class TestAcme(ModelProviderSuite):
            model = "acme/small-1"
            capabilities = frozenset({"usage", "max_tokens", "server"})

            @pytest.fixture
            def server(self):
                with AcmeServer() as server:
                    yield server
    """

    model: ClassVar[str]
    model_args: ClassVar[Mapping[str, Any]] = {}
    api_key: ClassVar[str | None] = "testkit-credential-3f9a"
    capabilities: ClassVar[frozenset[str]] = frozenset({"usage"})

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def server(self) -> FakeServer | None:
        """A fake server; none for a provider that needs none."""
        return None

    @asynccontextmanager
    async def made(self, server: FakeServer | None) -> AsyncIterator[Model]:
        """The model under test, closed at the end."""
        address: dict[str, Any] = {} if server is None else {"base_url": server.base_url, "api_key": self.api_key}
        model = get_model(self.model, memoize=False, **address, **self.model_args)
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

    @check("model.record")
    def test_its_record_says_what_it_is(self) -> None:
        record = self.record()

        assert record.name == self.model.partition("/")[0]
        assert record.backends == self.backends, "the suite's `backends` and the record's agree"
        assert record.max_connections >= 1

    @check("model.generate")
    async def test_it_replies(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            output = await model.generate("Say hello.")

        assert output.error is None
        assert output.completion
        assert output.choices[0].message.role == "assistant"
        assert output.model

    @check("model.conversation")
    async def test_it_takes_a_conversation(self, server: FakeServer | None) -> None:
        messages: list[ChatMessage] = [
            ChatMessageSystem(content="Answer in one word."),
            ChatMessageUser(content="Which colour is the sky?"),
            ChatMessageAssistant(content="Blue."),
            ChatMessageUser(content="And grass?"),
        ]
        before = [message.model_dump(exclude={"id"}) for message in messages]

        async with self.made(server) as model:
            output = await model.generate(messages)

        assert output.completion
        after = [message.model_dump(exclude={"id"}) for message in messages]  # the core may give a message its id
        assert after == before, "the caller's messages are the caller's"

    @check("model.stop_reason")
    async def test_its_stop_reason_is_one_of_the_known(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            output = await model.generate("Say hello.")

        assert output.stop_reason in STOP_REASONS

    @check("model.max_tokens", needs="max_tokens")
    async def test_a_reply_that_hit_the_limit_says_so(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            output = await model.generate("Count from 1 to 100.", config=GenerateConfig(max_tokens=1))

        assert output.stop_reason == "max_tokens"

    @check("model.usage", needs="usage")
    async def test_it_counts_tokens(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            usage = (await model.generate("Say hello.")).usage

        assert usage is not None
        assert usage.input_tokens > 0
        assert usage.output_tokens > 0
        assert usage.total_tokens >= usage.input_tokens + usage.output_tokens

    @check("model.concurrent")
    async def test_calls_at_once_do_not_mix(self, server: FakeServer | None) -> None:
        replies: list[str] = []

        async def one(model: Model) -> None:
            replies.append((await model.generate("Say hello.")).completion)

        async with self.made(server) as model, anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(one, model)

        assert len(replies) == 5
        assert all(replies)

    @check("model.cancel")
    async def test_a_cancelled_call_ends_and_the_next_one_works(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await self.ask(model.api)
                await anyio.lowlevel.checkpoint()  # a model in the process itself may never have waited
            output = await self.ask(model.api)

        assert scope.cancelled_caught
        assert output.completion

    @check("model.close")
    async def test_it_can_be_closed_twice_and_unused(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            await model.api.aclose()

            await model.api.aclose()

    @check("model.connection_key")
    async def test_its_connection_key_is_steady(self, server: FakeServer | None) -> None:
        async with self.made(server) as one, self.made(server) as other:
            assert one.api.connection_key() == other.api.connection_key()

    @check("model.no_secret")
    async def test_its_credential_is_shown_nowhere(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            shown = f"{model!r} {model} {model.api!r} {model.api} {model.api.connection_key()}"

        assert not self.api_key or self.api_key not in shown

    @check("model.one_request", needs="server")
    async def test_a_call_is_exactly_one_request(self, server: FakeServer) -> None:
        async with self.made(server) as model:
            await self.ask(model.api)

        assert len(server.requests) == 1

    @check("model.raw_call", needs="server")
    async def test_it_hands_over_the_raw_call_without_its_credential(self, server: FakeServer) -> None:
        record = CallRecord()
        token = current_call.set(record)

        async with self.made(server) as model:
            await self.ask(model.api)
        current_call.reset(token)

        assert isinstance(record.request, dict)
        assert record.response is not None
        assert self.api_key is None or self.api_key not in f"{record.request} {record.response} {record.headers}"

    @check("model.no_retry", needs="server")
    @pytest.mark.parametrize(
        ("status", "kind"), [(401, "permanent"), (400, "permanent"), (429, "rate_limit"), (500, "transient")]
    )
    async def test_a_failure_is_one_request_and_is_classified(self, server: FakeServer, status: int, kind: str) -> None:
        server.fail(status)

        async with self.made(server) as model:
            with pytest.raises(Exception) as raised:
                await self.ask(model.api)
            retry = model.api.classify(raised.value)

        assert len(server.requests) == 1
        assert retry.kind == kind
        assert self.api_key is None or self.api_key not in f"{raised.value!r} {raised.value}"

    @check("model.retry_after", needs="server")
    async def test_it_reads_how_long_to_wait(self, server: FakeServer) -> None:
        server.fail(429, headers={"retry-after": "7"})

        async with self.made(server) as model:
            with pytest.raises(Exception) as raised:
                await self.ask(model.api)
            retry = model.api.classify(raised.value)

        assert retry == Retry("rate_limit", after=7.0)
