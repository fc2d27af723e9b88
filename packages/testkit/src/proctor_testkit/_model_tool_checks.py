"""Checks of model providers: tools, and what must go back to the model as it came."""

from __future__ import annotations

import json
from typing import Any

from proctor.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, ChatMessageUser
from proctor.schema import ToolCall, ToolFunction, ToolInfo
from proctor_testkit._model_checks import WEATHER, FakeServer, ModelChecks, leaves
from proctor_testkit._suite import check

__all__ = ["ToolChecks"]

CLOCK = ToolInfo(name="clock", description="Tells the time.")
QUESTION = ChatMessageUser(content="How is the weather in Bern?")
THOUGHTS = 'First:  two\tspaces\nand a line,\u2028then é 語 😀 \\ and "quotes"'


class ToolChecks(ModelChecks):
    """Tools are offered, called and answered; reasoning is replayed."""

    @check("model.tools", needs="server tools")
    async def test_a_tool_is_offered_and_called(self, server: Any) -> None:
        server.say(None, calls=[("weather", {"city": "Bern", "days": 2})])

        async with self.made(server) as model:
            output = await self.converse(model.api, [QUESTION], [WEATHER, CLOCK])

        offered = set(leaves(self.body(server, 0)))
        assert {WEATHER.name, WEATHER.description, CLOCK.name, "city", "Its name."} <= offered
        [call] = output.choices[0].message.tool_calls or []
        assert (call.function, call.arguments) == ("weather", {"city": "Bern", "days": 2})
        assert output.stop_reason == "tool_calls"

    @check("model.parallel_tools", needs="server tools")
    async def test_several_calls_are_told_apart(self, server: Any) -> None:
        server.say("I will look.", calls=[("weather", {"city": "Bern"}), ("weather", {"city": "Rome"}), ("clock", {})])

        async with self.made(server) as model:
            output = await self.converse(model.api, [QUESTION], [WEATHER, CLOCK])

        calls = output.choices[0].message.tool_calls or []
        assert [call.arguments for call in calls] == [{"city": "Bern"}, {"city": "Rome"}, {}]
        assert len({call.id for call in calls}) == 3
        assert output.completion == "I will look."

    @check("model.tool_results", needs="server tools")
    async def test_results_go_back_beside_their_calls(self, server: FakeServer) -> None:
        calls = [ToolCall(id=f"call_{city}", function="weather", arguments={"city": city}) for city in ("Bern", "Rome")]
        messages: list[ChatMessage] = [
            QUESTION,
            ChatMessageAssistant(content="", tool_calls=calls),
            ChatMessageTool(content="12 degrees", tool_call_id="call_Bern", function="weather"),
            ChatMessageTool(content="28 degrees", tool_call_id="call_Rome", function="weather"),
        ]

        async with self.made(server) as model:
            output = await self.converse(model.api, messages, [WEATHER])

        assert output.completion
        sent = [text for text in leaves(self.body(server, 0)) if isinstance(text, str)]
        for city, result in (("Bern", "12 degrees"), ("Rome", "28 degrees")):
            assert sent.count(f"call_{city}") >= 2, "the call and its result name each other"
            assert any(result in text for text in sent)
        assert sent.index("12 degrees") < sent.index("28 degrees")

    @check("model.tool_choice", needs="server tools")
    async def test_a_tool_can_be_forced(self, server: FakeServer) -> None:
        async with self.made(server) as model:
            for choice in ("auto", "any", ToolFunction(name="weather")):
                await self.converse(model.api, [QUESTION], [WEATHER, CLOCK], choice)

        bodies = [json.dumps(self.body(server, number), sort_keys=True) for number in range(3)]
        assert len(set(bodies)) == 3, "each choice is told to the service in its own way"

    @check("model.reasoning", needs="server reasoning")
    async def test_reasoning_goes_back_as_it_came(self, server: Any) -> None:
        server.say("Blue.", reasoning=THOUGHTS, **self.reasoning_proof)
        question, more = ChatMessageUser(content="Which colour is the sky?"), ChatMessageUser(content="And grass?")

        async with self.made(server) as model:
            said = (await self.converse(model.api, [question])).choices[0].message
            stored = ChatMessageAssistant.model_validate_json(said.model_dump_json())
            await self.converse(model.api, [question, said, more])
            await self.converse(model.api, [question, stored, more])

        direct, from_log = self.body(server, 1), self.body(server, 2)
        assert any(part.type == "reasoning" for part in said.content if not isinstance(part, str))
        assert {THOUGHTS, *map(str, self.reasoning_proof.values())} <= set(leaves(direct)), "byte for byte"
        assert from_log == direct, "also from a message that was in a log"
