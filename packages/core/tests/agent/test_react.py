"""The react agent, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from scripted_model import a_state, generate_with, scripted, tool_calls, turns
from scripted_tools import one_tool

from proctor.agent import (
    Agent,
    AgentAttempts,
    AgentPrompt,
    AgentState,
    AgentSubmit,
    agent,
    handoff,
    last_message,
    react,
    score,
    use_scorers,
)
from proctor.limits import LimitExceededError, SampleLimits, use_limits
from proctor.log import Transcript, use_transcript
from proctor.model import use_models
from proctor.schema import ChatMessage, ChatMessageUser, ModelOutput, Score, ScoreEvent
from proctor.scorer import Scorer
from proctor.solver import Target, TaskState, run_solver, set_sample_state
from proctor.tool import Tool, tool

pytestmark = pytest.mark.anyio


async def double(x: str) -> str:
    return x * 2


DOUBLE = one_tool(double, "double")
CALL = tool_calls(("double", {"x": "a"}), text="calling")


def submit(answer: str, text: str = "") -> ModelOutput:
    return tool_calls(("submit", {"answer": answer}), text=text)


def stopped(reason: Any, text: str = "cut") -> ModelOutput:
    return ModelOutput.from_content("mock/model", text, stop_reason=reason)


async def includes_target(state: TaskState, target: Target) -> Score:
    return Score(value="C" if target.text in state.output.completion else "I")


SCORERS: Mapping[str, Scorer] = {"includes": includes_target}


async def solved(what: Agent, *outputs: str | ModelOutput, state: TaskState | None = None) -> TaskState:
    model = scripted(*(each.model_copy(deep=True) if isinstance(each, ModelOutput) else each for each in outputs))
    state = state or a_state(target="right")
    set_sample_state(state)
    with use_models(model), use_scorers(SCORERS):
        return await run_solver(what, state, generate_with(model))


async def after(what: Agent, *outputs: str | ModelOutput) -> list[tuple[str, str]]:
    """The conversation without the system message."""
    return [turn for turn in turns(await solved(what, *outputs)) if turn[0] != "system"]


async def system(what: Agent) -> str | None:
    first = turns(await solved(what, submit("x")))[0]
    return first[1] if first[0] == "system" else None


async def test_it_calls_tools_until_it_submits() -> None:
    state = await solved(react(tools=[DOUBLE]), CALL, submit("right", "here"))
    assert turns(state)[1:] == [
        ("user", "question"),
        ("assistant", "calling"),
        ("tool", "aa"),
        ("assistant", "here\n\nright"),
    ]
    assert state.output.completion == "here\n\nright"
    assert all(not getattr(message, "tool_calls", None) for message in state.messages[-1:])


async def test_the_system_message_is_made_of_parts() -> None:
    standard = await system(react())
    assert standard is not None and "the submit() tool" in standard and "handoff" not in standard
    said = await system(react(prompt="Be good."))
    assert said is not None and said.startswith("Be good.\n\n") and said.endswith(standard)
    parts = AgentPrompt("I {submit}", "H", "A", "S {submit}")
    assert await system(react(prompt=parts, submit=AgentSubmit(name="submit"))) == "I {submit}\n\nA\nS submit"
    assert await system(react(prompt=AgentPrompt("I", None, None, None))) == "I"
    assert await system(react(prompt=None)) is None


async def test_handoffs_are_explained_when_there_are_any() -> None:
    @agent
    def other() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            """Other."""
            return state

        return execute

    text = await system(react(prompt=AgentPrompt("I", "H", "A", None), tools=[handoff(other())]))
    assert text == "I\n\nH\n\nA"


async def test_without_a_submit_tool_it_ends_when_no_tool_is_called() -> None:
    assert await after(react(tools=[DOUBLE], submit=False), CALL, "final") == [
        ("user", "question"),
        ("assistant", "calling"),
        ("tool", "aa"),
        ("assistant", "final"),
    ]
    with pytest.raises(ValueError, match="needs a submit tool"):
        react(submit=False, on_continue="go")


async def test_a_message_without_calls_is_answered_with_a_request_to_go_on() -> None:
    conversation = await after(react(), "hm", submit("x"))
    assert "call the `submit()` tool" in conversation[2][1]
    conversation = await after(react(on_continue="Go on, {submit}."), "hm", submit("x"))
    assert conversation[2] == ("user", "Go on, submit.")
    conversation = await after(react(tools=[DOUBLE], on_continue="Go on."), CALL, submit("x"))
    assert ("user", "Go on.") not in conversation


async def always(state: AgentState) -> bool:
    return True


async def never(state: AgentState) -> bool:
    return False


async def words(state: AgentState) -> str:
    return "more, {submit}"


async def other_state(state: AgentState) -> AgentState:
    return AgentState(messages=[*state.messages, ChatMessageUser(content="from a state")])


async def test_a_function_decides_after_each_turn() -> None:
    tools = [DOUBLE]
    told = await after(react(tools=tools, on_continue=always), CALL, "hm", submit("x"))
    assert [role for role, _ in told] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert len(await after(react(tools=tools, on_continue=never), CALL)) == 3
    told = await after(react(tools=tools, on_continue=words), CALL, submit("x"))
    assert told[3] == ("user", "more, submit")
    told = await after(react(tools=tools, on_continue=other_state), CALL, submit("x"))
    assert told[3] == ("user", "from a state")


async def test_wrong_answers_are_reported_while_attempts_are_left() -> None:
    with use_transcript(Transcript()) as transcript:
        conversation = await after(react(attempts=3), submit("wrong"), submit("right"), submit("unused"))
    assert [role for role, _ in conversation] == ["user", "assistant", "user", "assistant"]
    assert "not correct" in conversation[2][1]
    assert conversation[-1][1] == "right"
    scores = [event for event in transcript.events if isinstance(event, ScoreEvent)]
    assert [(event.score.value, event.intermediate, event.target) for event in scores] == [
        ("I", True, "right"),
        ("C", True, "right"),
    ]
    assert (await after(react(attempts=2), submit("wrong"), submit("bad"), submit("right")))[-1][1] == "bad"


async def test_what_is_said_of_a_wrong_answer_can_be_decided() -> None:
    async def message(state: AgentState, scores: list[Score]) -> str:
        return f"{state.output.completion} is {scores[0].value}"

    attempts = AgentAttempts(2, message, lambda value: 0.0)
    assert ("user", "right is C") in await after(react(attempts=attempts), submit("right"), submit("x"))
    attempts = AgentAttempts(2, "No.")
    assert ("user", "No.") in await after(react(attempts=attempts), submit("wrong"), submit("x"))


async def test_the_answer_may_be_all_of_the_completion() -> None:
    state = await solved(react(submit=AgentSubmit(name="done", answer_only=True)), _done("right", "text"))
    assert state.output.completion == "right"
    assert turns(state)[-1] == ("assistant", "text\n\nright")
    state = await solved(react(submit=AgentSubmit(answer_delimiter="|")), submit("right", "text"))
    assert state.output.completion == "text|right"


def _done(answer: str, text: str) -> ModelOutput:
    return tool_calls(("done", {"answer": answer}), text=text)


async def test_calls_of_the_submit_tool_may_stay() -> None:
    state = await solved(react(submit=AgentSubmit(keep_in_messages=True)), submit("right", "text"))
    assert turns(state)[-2:] == [("assistant", "text"), ("tool", "right")]
    assert state.output.completion == "text\n\nright"


async def test_another_tool_may_take_the_answer() -> None:
    @tool
    def hand_in() -> Tool:
        async def execute(answer: str) -> str:
            """Hand in.

            Args:
                answer: The answer.
            """
            return f"<{answer}>"

        return execute

    state = await solved(react(submit=AgentSubmit(tool=hand_in())), tool_calls(("hand_in", {"answer": "right"})))
    assert state.output.completion == "<right>"


async def test_other_calls_beside_a_submission_stay() -> None:
    mixed = tool_calls(("submit", {"answer": "right"}), ("double", {"x": "a"}), text="t")
    conversation = await after(react(tools=[DOUBLE]), mixed)
    assert conversation[1:] == [("assistant", "t\n\nright"), ("tool", "aa")]


async def test_a_submission_that_could_not_be_read_is_no_answer() -> None:
    state = await solved(react(), tool_calls(("submit", {"wrong": 1})), submit("right"))
    assert state.output.completion == "right"


async def test_a_full_context_ends_it_or_is_cut() -> None:
    assert await after(react(), stopped("model_length")) == [("user", "question"), ("assistant", "cut")]
    calls = [CALL] * 5
    conversation = await after(react(tools=[DOUBLE], truncation="auto"), *calls, stopped("model_length"), submit("x"))
    assert conversation[0] == ("user", "question")
    assert 3 < len(conversation) < 11
    conversation = await after(
        react(tools=[DOUBLE], truncation=last_message), CALL, stopped("model_length"), submit("x")
    )
    assert conversation == [("tool", "aa"), ("assistant", "x")]
    unchanged: list[ChatMessage] = []

    async def keep(messages: list[ChatMessage]) -> list[ChatMessage]:
        unchanged.extend(messages)
        return messages

    assert (await after(react(truncation=keep), stopped("model_length")))[-1] == ("assistant", "cut")
    assert unchanged


async def test_refusals_are_asked_again_as_often_as_told() -> None:
    refusal = stopped("content_filter", "no")
    assert await after(react(retry_refusals=2), refusal, refusal, submit("x")) == [
        ("user", "question"),
        ("assistant", "x"),
    ]
    conversation = await after(react(retry_refusals=1), refusal, refusal, submit("x"))
    assert conversation[1] == ("assistant", "no")


async def test_an_agent_may_stand_for_the_model() -> None:
    seen: list[str] = []

    @agent
    def model_like() -> Agent:
        async def execute(state: AgentState, tools: list[Any]) -> AgentState:
            seen.extend(each.name for each in tools)
            state.output = submit("right")
            state.messages.append(state.output.message)
            return state

        return execute

    assert (await after(react(tools=[DOUBLE], model=model_like())))[-1] == ("assistant", "right")
    assert seen == ["double", "submit"]


async def test_another_model_may_be_asked() -> None:
    assert (await after(react(model=scripted(submit("theirs"))), submit("mine")))[-1] == ("assistant", "theirs")


async def test_limits_end_it_with_what_there_is() -> None:
    state = a_state(target="right")
    with use_limits(SampleLimits(message_limit=5)), pytest.raises(LimitExceededError):
        await solved(react(tools=[DOUBLE]), *[CALL] * 9, state=state)
    assert [role for role, _ in turns(state)] == ["system", "user", "assistant", "tool", "assistant"]
    state = a_state(target="right")
    with use_limits(SampleLimits(turn_limit=1)), pytest.raises(LimitExceededError):
        await solved(react(tools=[DOUBLE]), *[CALL] * 9, state=state)
    assert [role for role, _ in turns(state)] == ["system", "user", "assistant", "tool"]


async def test_one_agent_serves_many_samples() -> None:
    shared = react(tools=[DOUBLE], attempts=2)
    for _ in range(2):
        assert len(await after(shared, submit("wrong"), submit("right"))) == 4


async def test_scores_need_scorers_and_a_sample() -> None:
    set_sample_state(a_state())
    with pytest.raises(RuntimeError, match="no scorer here"):
        await score(a_state())
    state = a_state(target="x")
    state.output = ModelOutput.from_content("m", "x")
    with use_scorers(SCORERS):
        assert [given.value for given in await score(state)] == ["C"]
