"""Checks of model providers: calls that work."""

from __future__ import annotations

import copy
from typing import Any

import anyio
import pytest

from proctor.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
)
from proctor_testkit._model_checks import WEATHER, FakeServer, ModelChecks
from proctor_testkit._suite import check

__all__ = ["CallChecks"]

COUNTS = ((2, 7), (60, 4))
"""Words of a short and of a long question, and tokens of input and output that a service counts for them."""

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

        assert output.stop_reason in STOP_REASONS, f"{output.stop_reason!r} is none of {sorted(STOP_REASONS)}"

    @check("model.max_tokens", needs="max_tokens")
    async def test_a_reply_that_hit_the_limit_says_so(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            output = await model.generate("Count from 1 to 100.", config=GenerateConfig(max_tokens=1))

        assert output.stop_reason == "max_tokens", (
            f"a reply that max_tokens=1 ended has the stop reason `max_tokens`, not `{output.stop_reason}`"
        )

    @check("model.usage", needs="usage")
    async def test_it_counts_tokens(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            usage = (await model.generate("Say hello.")).usage

        assert usage is not None, "with the capability `usage` an output has a `usage`; token limits rely on it"
        assert usage.input_tokens > 0, f"a question has tokens, but usage.input_tokens is {usage.input_tokens}"
        assert usage.output_tokens > 0, f"a reply has tokens, but usage.output_tokens is {usage.output_tokens}"
        assert usage.total_tokens >= usage.input_tokens + usage.output_tokens, (
            f"usage.total_tokens is at least the sum of input and output tokens, but {usage.total_tokens} < "
            f"{usage.input_tokens} + {usage.output_tokens}"
        )

    @check("model.usage_counts", needs="usage")
    async def test_its_tokens_are_those_of_the_call(self, server: Any) -> None:
        if server is not None and "faults" not in self.capabilities:
            pytest.skip("what the service counted is known only of a ScriptedServer (the capability `faults`)")
        counted: list[tuple[int, int]] = []
        async with self.made(server) as model:
            for asked, said in COUNTS:
                if server is not None:
                    server.say("Hello.", usage={"input": asked, "output": said})
                question: list[ChatMessage] = [ChatMessageUser(content="word " * asked)]
                usage = (await model.api.generate(question, [], "auto", GenerateConfig(max_tokens=8))).usage
                assert usage is not None, "with the capability `usage` an output has a `usage`"
                counted.append((usage.input_tokens, usage.output_tokens))

        if server is not None:
            assert counted == list(COUNTS), (
                f"the service counted (input, output) tokens {list(COUNTS)}, but the outputs say {counted}"
            )
        assert counted[1][0] > counted[0][0], (
            f"a question of {COUNTS[1][0]} words has more tokens than one of {COUNTS[0][0]}, but usage.input_tokens "
            f"went from {counted[0][0]} to {counted[1][0]}"
        )

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
            output = await self.ask(model.api, GenerateConfig(max_tokens=8))

        self.keeps_secret(shown, "repr() and str() of a model, and its connection key")
        self.keeps_secret(output.model_dump_json(), "an output, its metadata included (it is written to the log)")

    @check("model.inputs")
    async def test_what_it_is_given_stays_as_it_was(self, server: FakeServer | None) -> None:
        input: list[ChatMessage] = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="Say hello.")]
        tools = [WEATHER] if "tools" in self.capabilities else []
        config = GenerateConfig(max_tokens=20, temperature=0.5, stop_seqs=["END"])
        given = {"input": input, "tools": tools, "config": config}
        before = copy.deepcopy(given)

        async with self.made(server) as model:
            await model.api.generate(input, tools, "auto", config)

        for name, value in given.items():
            assert value == before[name], (
                f"generate() changed its `{name}`, which is the caller's: the next attempt, and other samples, get the "
                "same object; change a copy"
            )
