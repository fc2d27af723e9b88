"""Checks of model providers: calls that work."""

from __future__ import annotations

import anyio

from proctor.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
)
from proctor_testkit._model_checks import FakeServer, ModelChecks
from proctor_testkit._suite import check

__all__ = ["CallChecks"]

STOP_REASONS = {"stop", "max_tokens", "model_length", "tool_calls", "content_filter", "unknown"}


class CallChecks(ModelChecks):
    """What a call gives back, and what it leaves alone."""

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
