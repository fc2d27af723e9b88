"""What an agent may use: run by itself, as a tool, by a handoff, as a solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from proctor import Task
from proctor.agent import Agent, AgentState, agent, as_solver, as_tool, handoff, run
from proctor.dataset import Sample
from proctor.limits import token_limit
from proctor.model import Model, ModelOutput, get_model
from proctor.schema import ChatMessageTool, EvalLog, ModelUsage
from proctor.scorer import includes
from proctor.solver import generate, use_tools
from proctor.tool import Tool, tool

Run = Callable[..., list[EvalLog]]


def _reply(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
    if tools and not any(isinstance(message, ChatMessageTool) for message in input):
        output = ModelOutput.for_tool_call(
            "model", tools[0].name, {"input": "x"} if tools[0].parameters.required else {}
        )
    else:
        output = ModelOutput.from_content("model", "x")
    output.usage = ModelUsage(input_tokens=6, output_tokens=4, total_tokens=10)
    return output


def _model() -> Model:
    return get_model("mock/model", custom_outputs=_reply, memoize=False)


@agent(description="Asks three times.")
def three_times() -> Agent:
    async def execute(state: AgentState) -> AgentState:
        for _ in range(3):
            state.output = await _model().generate(state.messages)
            state.messages.append(state.output.message)
        return state

    return execute


@tool
def asks() -> Tool:
    async def execute() -> str:
        """Ask a model."""
        with token_limit(5):
            await _model().generate("a")
        return "answer"

    return execute


@pytest.mark.anyio
async def test_run_gives_the_state_as_far_as_it_came_and_the_limit_that_ended_it() -> None:
    limit = token_limit(15)

    state, error = await run(three_times(), "go", [limit])

    assert error is not None
    assert error.source is limit
    assert [message.role for message in state.messages] == ["user", "assistant"]


@pytest.mark.anyio
async def test_run_within_its_limits_says_that_none_ended_it() -> None:
    state, error = await run(three_times(), "go", limits=[token_limit(1000)])

    assert error is None
    assert len(state.messages) == 4


@pytest.fixture(params=["asyncio", "trio"])
def evaluate(request: pytest.FixtureRequest, tmp_path: Any) -> Callable[[Any], EvalLog]:
    from proctor import eval

    def go(solver: Any) -> EvalLog:
        task = Task(dataset=[Sample(input="q", target="x")], solver=solver, scorer=includes())
        options: dict[str, Any] = {"display": "none", "log_dir": str(tmp_path), "async_backend": request.param}
        [log] = eval(task, model=_model(), **options)
        return log

    return go


@pytest.mark.parametrize("made", [lambda: as_tool(three_times(), limits=[token_limit(15)]), asks], ids=["agent", "own"])
def test_the_model_is_told_of_a_limit_that_ended_a_tool_and_goes_on(evaluate: Any, made: Callable[[], Tool]) -> None:
    log = evaluate([use_tools(made()), generate()])

    [sample] = log.samples
    assert sample.limit is None
    _, _, answer, last = sample.messages
    assert answer.error.type == "limit"
    assert "exceeded its token limit" in answer.error.message
    assert last.text == "x"


def test_a_handoff_that_reaches_its_limit_gives_the_conversation_back(evaluate: Any) -> None:
    log = evaluate([use_tools(handoff(three_times(), limits=[token_limit(15)])), generate()])

    [sample] = log.samples
    assert (log.status, sample.limit) == ("success", None)
    assert any("ended by its token limit of 15" in message.text for message in sample.messages)


def test_a_solver_made_of_an_agent_ends_its_sample_which_is_scored(evaluate: Any) -> None:
    log = evaluate(as_solver(three_times(), limits=[token_limit(15)]))

    [sample] = log.samples
    assert (sample.limit.type, sample.limit.limit) == ("token", 15)
    assert sample.scores["includes"].value == "C"
