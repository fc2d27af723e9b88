"""Agents: as solvers, as tools, by handoff, on their own."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_model import a_state, generate_with, scripted, tool_calls, turns
from scripted_tools import one_tool

from proctor.agent import (
    Agent,
    AgentState,
    agent,
    agent_with,
    as_solver,
    as_tool,
    content_only,
    handoff,
    is_agent,
    last_message,
    react,
    remove_tools,
    run,
    trim_messages,
)
from proctor.limits import LimitExceededError, SampleLimits, use_limits
from proctor.log import Transcript, use_transcript
from proctor.model import get_model, use_models
from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    ModelOutput,
    SpanBeginEvent,
    ToolCall,
    ToolEvent,
)
from proctor.solver import Solver, chain, generate, plan_steps, run_solver, solver, system_message, use_tools
from proctor.tool import execute_tools, tool_info

pytestmark = pytest.mark.anyio


@agent
def helper(greeting: str = "hey") -> Agent:
    async def execute(state: AgentState, extra: str = "none") -> AgentState:
        """Helps out.

        Args:
            state: The conversation.
            extra: An extra.
        """
        state.output = ModelOutput.from_content("mock/model", f"{greeting} {extra}")
        state.messages.append(state.output.message)
        return state

    return execute


async def double(x: str) -> str:
    return x * 2


DOUBLE = one_tool(double, "double")


@agent(name="worker", description="Works.")
def working() -> Agent:
    async def execute(state: AgentState) -> AgentState:
        state.output = await get_model().generate(state.messages, [DOUBLE])
        state.messages.append(state.output.message)
        state.messages.extend((await execute_tools(state.messages, [DOUBLE])).messages)
        state.output = await get_model().generate(state.messages, [DOUBLE])
        state.messages.append(state.output.message)
        return state

    return execute


async def solved(what: Any, *outputs: str | ModelOutput) -> list[tuple[str, str]]:
    model = scripted(*outputs)
    with use_models(model):
        return turns(await run_solver(what, a_state(), generate_with(model)))


def spans(transcript: Transcript) -> list[tuple[str, str | None]]:
    return [(event.name, event.type) for event in transcript.events if isinstance(event, SpanBeginEvent)]


async def test_an_agent_is_run_on_a_copy_of_what_it_is_given() -> None:
    given: list[ChatMessage] = [ChatMessageUser(content="a")]
    state = await run(helper(), given, extra="E")
    assert turns(state) == [("user", "a"), ("assistant", "hey E")]
    assert state.output.completion == "hey E"
    assert len(given) == 1
    again = await run(helper("ho"), state)
    assert turns(again)[-1] == ("assistant", "ho none")
    assert len(state.messages) == 2
    assert turns(await run(helper(), "text"))[0] == ("user", "text")


async def test_an_agent_s_run_is_a_span_that_can_be_named() -> None:
    with use_transcript(Transcript()) as transcript:
        await run(helper(), "a")
        await run(helper(), "a", name="second")
    assert spans(transcript) == [("helper", "agent"), ("second", "agent")]


async def test_an_agent_that_returns_no_state_is_named() -> None:
    @agent
    def forgetful() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            return None  # type: ignore[return-value]  # the mistake

        return execute

    with pytest.raises(TypeError, match="'forgetful' returned NoneType"):
        await run(forgetful(), "a")


def test_the_output_of_a_state_is_its_last_assistant_message_until_one_is_set() -> None:
    state = AgentState(messages=[ChatMessageUser(content="q"), ChatMessageAssistant(content="a", model="m")])
    assert (state.output.completion, state.output.model, state.output.stop_reason) == ("a", "m", "stop")
    assert AgentState(messages=[]).output.empty


async def test_an_agent_stands_where_a_solver_is_asked_for() -> None:
    assert await solved(helper()) == [("user", "question"), ("assistant", "hey none")]
    assert await solved(as_solver(helper("ho"), extra="E")) == [("user", "question"), ("assistant", "ho E")]
    assert await solved(chain(system_message("s"), helper())) == [
        ("system", "s"),
        ("user", "question"),
        ("assistant", "hey none"),
    ]
    [step] = plan_steps(helper("ho"))
    assert (step.solver, step.params) == ("helper", {"greeting": "ho"})
    assert is_agent(helper()) and not is_agent(generate())


async def test_a_solver_function_may_return_an_agent() -> None:
    @solver
    def wrapped() -> Solver:
        return helper()  # type: ignore[return-value]  # turned into a solver

    assert (await solved(wrapped()))[-1] == ("assistant", "hey none")
    assert plan_steps(wrapped())[0].solver == "wrapped"


async def test_what_an_agent_did_until_a_limit_ended_it_is_kept() -> None:
    state, model = a_state(), scripted(tool_calls(("double", {"x": "a"})), "done")
    with use_limits(SampleLimits(message_limit=2)), use_models(model), pytest.raises(LimitExceededError):
        await run_solver(working(), state, generate_with(model))
    assert [role for role, _ in turns(state)] == ["user", "assistant"]
    assert state.output.stop_reason == "tool_calls"


async def test_an_agent_as_a_tool_has_a_conversation_of_its_own() -> None:
    calls = tool_calls(("helper", {"input": "please", "extra": "E"}))
    with use_transcript(Transcript()) as transcript:
        after = await solved(chain(use_tools(as_tool(helper())), generate()), calls, "done")
    assert after == [("user", "question"), ("assistant", ""), ("tool", "hey E"), ("assistant", "done")]
    assert spans(transcript)[2:4] == [("helper", "tool"), ("helper", "agent")]


def test_an_agent_as_a_tool_is_described_by_the_agent() -> None:
    info = tool_info(as_tool(helper()))
    assert (info.name, info.description, info.parameters.required) == ("helper", "Helps out.", ["input"])
    assert list(info.parameters.properties) == ["input", "extra"]
    assert list(tool_info(as_tool(helper(), extra="bound")).parameters.properties) == ["input"]
    assert tool_info(as_tool(working())).description == "Works."
    assert tool_info(as_tool(working(), "Other.")).description == "Other."
    renamed = agent_with(helper(), name="aide", description="Aids.")
    assert tool_info(as_tool(renamed)).name == "aide"
    assert list(tool_info(handoff(renamed)).parameters.properties) == ["extra"]


def test_an_agent_without_a_description_can_not_be_a_tool() -> None:
    @agent
    def silent() -> Agent:
        async def execute(state: AgentState, size: int) -> AgentState:
            return state

        return execute

    with pytest.raises(ValueError, match="'silent' has no description"):
        as_tool(silent())
    with pytest.raises(ValueError, match="no description of parameter 'size'"):
        as_tool(silent(), "Something.")
    with pytest.raises(ValueError, match="'react' has no description"):
        handoff(react())


async def test_a_handoff_gives_the_conversation_away_and_back() -> None:
    hand_over = tool_calls(("transfer_to_worker", {}))
    work = tool_calls(("double", {"x": "ab"}), text="working")
    whole = chain(system_message("s"), use_tools(handoff(working())), generate())
    with use_transcript(Transcript()) as transcript:
        after = await solved(whole, hand_over, work, "worked", "done")
    assert after == [
        ("system", "s"),
        ("user", "question"),
        ("assistant", ""),
        ("tool", "Successfully transferred to worker."),
        ("assistant", "[worker] working\ndouble(x='ab')"),
        ("user", "abab"),
        ("assistant", "[worker] worked"),
        ("user", "The worker agent has completed its work."),
        ("assistant", "done"),
    ]
    assert spans(transcript)[3:6] == [("worker", "handoff"), ("transfer_to_worker", "tool"), ("worker", "agent")]
    [event, _] = [event for event in transcript.events if isinstance(event, ToolEvent)]
    assert event.agent == "worker" and event.agent_span_id is not None


async def _seen_by(agent_filter: Any, *outputs: ModelOutput | str) -> tuple[list[tuple[str, str]], list[str]]:
    """What an agent sees after a handoff with a filter, and how many calls each assistant message has."""
    seen: list[ChatMessage] = []

    @agent
    def looking() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            """Looks."""
            seen.extend(state.messages)
            return state

        return execute

    await solved(chain(use_tools(DOUBLE, handoff(looking(), input_filter=agent_filter)), generate()), *outputs, "done")
    calls = [call.function for each in seen if isinstance(each, ChatMessageAssistant) for call in each.tool_calls or []]
    return [(message.role, message.text) for message in seen], calls


async def test_the_agent_sees_its_own_call_alone_and_what_the_filter_leaves() -> None:
    both = tool_calls(("double", {"x": "a"}), ("transfer_to_looking", {}), text="now")
    seen, calls = await _seen_by(None, both)
    assert seen == [
        ("user", "question"),
        ("assistant", "now"),
        ("tool", "Successfully transferred to looking."),
    ]
    assert calls == ["transfer_to_looking"]
    seen, calls = await _seen_by(remove_tools, both)
    assert seen[-1] == ("user", "Successfully transferred to looking.")
    assert calls == []


async def test_other_calls_of_the_message_are_answered_in_their_places() -> None:
    calls = tool_calls(("double", {"x": "1"}), ("transfer_to_helper", {}), ("double", {"x": "2"}))
    after = await solved(chain(use_tools(DOUBLE, handoff(helper())), generate()), calls, "done")
    assert [text for role, text in after if role in ("tool", "user")] == [
        "question",
        "11",
        "Successfully transferred to helper.",
        "The helper agent has completed its work.",
        "22",
    ]


async def test_a_handoff_with_wrong_arguments_does_not_happen() -> None:
    calls = tool_calls(("transfer_to_helper", {"nope": 1}))
    after = await solved(chain(use_tools(handoff(helper())), generate()), calls, "done")
    assert after[2:] == [("tool", ""), ("assistant", "done")]


def _calls(*names: str) -> list[ToolCall]:
    return [ToolCall(id=name, function=name, arguments={"x": 1}) for name in names]


CONVERSATION: list[ChatMessage] = [
    ChatMessageSystem(content="s"),
    ChatMessageUser(content="u"),
    ChatMessageAssistant(
        content=[ContentReasoning(reasoning="r"), ContentText(text="t", internal={"k": 1})], tool_calls=_calls("add")
    ),
    ChatMessageTool(content="res", tool_call_id="add", function="add"),
]


async def test_content_only_is_readable_for_anyone() -> None:
    user, assistant, answer = await content_only(CONVERSATION)
    assert (user.role, user.text) == ("user", "u")
    assert (assistant.role, assistant.text) == ("assistant", "t\nadd(x=1)")
    assert isinstance(assistant, ChatMessageAssistant) and assistant.tool_calls is None
    assert [part.type for part in assistant.content] == ["text", "text"]  # type: ignore[union-attr]  # a list here
    assert assistant.content[0].internal is None  # type: ignore[union-attr]
    assert (answer.role, answer.text) == ("user", "res")


async def test_tools_can_be_removed_and_the_last_message_taken() -> None:
    removed = await remove_tools(CONVERSATION)
    assert [message.role for message in removed] == ["system", "user", "assistant"]
    assert all(not message.tool_calls for message in removed if isinstance(message, ChatMessageAssistant))
    assert await last_message(CONVERSATION) == CONVERSATION[-1:]
    assert await last_message([]) == []


async def test_trimming_keeps_the_question_and_whole_calls() -> None:
    turns_: list[ChatMessage] = []
    for number in range(10):
        name = f"call{number}"
        turns_.append(ChatMessageAssistant(content=str(number), tool_calls=_calls(name)))
        turns_.append(ChatMessageTool(content="r", tool_call_id=name, function=name))
    head: list[ChatMessage] = [ChatMessageSystem(content="s"), ChatMessageUser(content="q", source="input")]
    trimmed = await trim_messages([*head, *turns_])
    assert trimmed[:2] == head
    assert trimmed[2:] == turns_[6:]
    called = {each.tool_calls[0].id for each in trimmed if isinstance(each, ChatMessageAssistant) and each.tool_calls}
    assert all(each.tool_call_id in called for each in trimmed if isinstance(each, ChatMessageTool))
