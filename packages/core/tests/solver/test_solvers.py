"""Solvers, chains of them, and what the log calls them."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_model import a_state, generate_with, scripted, tool_calls, turns
from scripted_tools import one_tool

from proctor import Task
from proctor.agent import Agent, AgentState, agent
from proctor.limits import LimitExceededError, SampleLimits, use_limits
from proctor.log import Transcript, use_transcript
from proctor.model import GenerateConfig, get_model, use_models
from proctor.schema import SpanBeginEvent, ToolFunction
from proctor.solver import (
    Chain,
    Generate,
    Solver,
    TaskState,
    chain,
    fork,
    generate,
    model_generate,
    plan_steps,
    run_solver,
    sample_state,
    self_critique,
    set_sample_state,
    solver,
    solver_name,
    system_message,
    use_tools,
    user_message,
)
from proctor.tool import ToolDef

pytestmark = pytest.mark.anyio


async def double(x: str) -> str:
    return x * 2


DOUBLE = one_tool(double, "double")


@solver
def finish(word: str, *, loud: bool = False) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.completed = True
        state.metadata["word"] = word
        return state

    return solve


@solver("in_class")
class InClass:
    async def __call__(self, state: TaskState, generate: Generate) -> TaskState:
        return await generate(state)


async def test_a_chain_runs_its_solvers_in_spans_until_one_completes_the_sample() -> None:
    whole = chain(system_message("s"), [InClass(), finish("done")], generate())
    with use_transcript(Transcript()) as transcript:
        state = await run_solver(whole, a_state(), generate_with(scripted("answer")))
    assert turns(state) == [("system", "s"), ("user", "question"), ("assistant", "answer")]
    assert state.metadata["word"] == "done"
    spans = [(each.name, each.type) for each in transcript.events if isinstance(each, SpanBeginEvent)]
    assert spans == [("system_message", "solver"), ("in_class", "solver"), ("finish", "solver")]


def test_the_plan_names_every_solver_and_its_arguments() -> None:
    steps = plan_steps(chain(system_message("s", who="me"), finish("w"), generate(temperature=0.5)))
    assert [(step.solver, step.params, step.params_passed) for step in steps] == [
        ("system_message", {"template": "s", "who": "me"}, {"template": "s", "who": "me"}),
        ("finish", {"word": "w", "loud": False}, {"word": "w"}),
        ("generate", {"tool_calls": "loop", "temperature": 0.5}, {"temperature": 0.5}),
    ]
    assert [step.solver for step in plan_steps(InClass())] == ["in_class"]


def test_chains_are_taken_apart() -> None:
    inner = chain(generate(), generate())
    assert len(Chain([inner, generate()])) == 3
    assert solver_name(Chain([inner])[0]) == "generate"


async def test_a_solver_that_forgets_to_return_the_state_is_named() -> None:
    @solver
    def forgetful() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            return None  # type: ignore[return-value]  # the mistake

        return solve

    with pytest.raises(TypeError, match="'forgetful' returned NoneType, not the state"):
        await run_solver(forgetful(), a_state(), generate_with(scripted()))


def test_what_is_no_solver_is_refused_where_it_is_written() -> None:
    with pytest.raises(TypeError, match="a solver was expected, found str 'generate'"):
        chain("generate")


def test_parentheses_that_were_forgotten_are_told_where_they_are_missing() -> None:
    @agent
    def someone() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            return state

        return execute

    for make in (
        lambda: Task(solver=generate),
        lambda: Task(solver=[user_message("hi"), generate]),
        lambda: Task(setup=generate),
    ):
        with pytest.raises(TypeError, match=r"generate is no solver but .* write generate\(\), with parentheses"):
            make()
    with pytest.raises(TypeError, match=r"someone is no agent but .* write someone\(\)"):
        chain(someone)
    assert len(chain(someone(), generate())) == 2  # type: ignore[arg-type]  # a chain is a sequence


async def test_a_solver_may_return_another_state() -> None:
    @solver
    def fresh() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            return a_state("fresh")

        return solve

    state = a_state()
    set_sample_state(state)
    after = await run_solver(fresh(), state, generate_with(scripted()))
    assert after is not state
    assert sample_state() is after


async def test_settings_of_generate_reach_the_engine() -> None:
    seen: dict[str, Any] = {}

    async def note(state: TaskState, tool_calls: str = "loop", **kwargs: Any) -> TaskState:
        seen.update(kwargs, tool_calls=tool_calls)
        return state

    await generate("single", temperature=0.5, cache=True)(a_state(), note)
    assert seen == {"tool_calls": "single", "temperature": 0.5, "cache": True}


async def test_the_loop_goes_on_until_no_tool_is_called() -> None:
    model = scripted(tool_calls(("double", {"x": "a"}), ("double", {"x": "b"}), text="calling"), "done")
    state = a_state()
    state.tools = [DOUBLE]
    state = await model_generate(model, state)
    assert turns(state) == [
        ("user", "question"),
        ("assistant", "calling"),
        ("tool", "aa"),
        ("tool", "bb"),
        ("assistant", "done"),
    ]
    assert state.output.completion == "done"


@pytest.mark.parametrize(("tool_calls_", "last"), [("single", "tool"), ("none", "assistant")])
async def test_the_loop_may_stop_after_one_turn_or_leave_calls_alone(tool_calls_: Any, last: str) -> None:
    model = scripted(tool_calls(("double", {"x": "a"})))
    state = a_state()
    state.tools = [DOUBLE]
    state = await model_generate(model, state, tool_calls_)
    assert turns(state)[-1][0] == last
    assert state.output.stop_reason == "tool_calls"


async def test_the_loop_ends_when_a_tool_completes_the_sample() -> None:
    state = a_state()

    async def complete(x: str) -> str:
        state.completed = True
        return "bye"

    state.tools = [one_tool(complete, "complete")]
    after = await model_generate(scripted(tool_calls(("complete", {}))), state)
    assert turns(after)[-1] == ("tool", "bye")


async def test_a_forced_tool_is_forced_once() -> None:
    choices: list[Any] = []

    def reply(messages: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        choices.append(tool_choice)
        return "done" if len(choices) > 1 else tool_calls(("double", {"x": "a"}))

    state = a_state()
    state.tools, state.tool_choice = [DOUBLE], ToolFunction(name="double")
    await model_generate(get_model("mock/model", memoize=False, custom_outputs=reply), state)
    assert choices == [ToolFunction(name="double"), "auto"]


@pytest.mark.parametrize(("limit", "messages"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)])
async def test_the_message_limit_ends_the_loop_with_what_there_is(limit: int, messages: int) -> None:
    model = scripted(*[tool_calls(("double", {"x": "a"}))] * 9)
    state = a_state()
    state.tools = [DOUBLE]
    with use_limits(SampleLimits(message_limit=limit)), pytest.raises(LimitExceededError) as caught:
        await model_generate(model, state)
    assert caught.value.type == "message"
    assert len(state.messages) == messages


async def test_the_turn_limit_ends_the_loop() -> None:
    model = scripted(*[tool_calls(("double", {"x": "a"}))] * 9)
    state = a_state()
    state.tools = [DOUBLE]
    with use_limits(SampleLimits(turn_limit=2)), pytest.raises(LimitExceededError) as caught:
        await model_generate(model, state)
    assert (caught.value.type, len(state.messages)) == ("turn", 5)


async def test_the_config_cuts_tool_output() -> None:
    model = scripted(tool_calls(("double", {"x": "a" * 100})), "done")
    state = a_state()
    state.tools = [DOUBLE]
    await model_generate(model, state, config=GenerateConfig(max_tool_output=10))
    assert "a" * 11 not in state.messages[2].text


async def test_use_tools_replaces_or_adds() -> None:
    other = one_tool(double, "other")

    async def after(*tools: Any, **settings: Any) -> tuple[list[str], Any]:
        state = a_state()
        state.tools, state.tool_choice = [DOUBLE], "none"
        state = await use_tools(*tools, **settings)(state, generate_with(scripted()))
        return [ToolDef(tool).name for tool in state.tools], state.tool_choice  # type: ignore[arg-type]  # no source here

    assert await after(other) == (["other"], "auto")
    assert await after([other], tool_choice="any") == (["other"], "any")
    assert await after(other, append=True) == (["double", "other"], "auto")
    assert await after(tool_choice="any") == (["double"], "any")
    assert await after(other, tool_choice=None) == (["other"], "none")


async def test_a_critique_leads_to_a_second_answer() -> None:
    model = scripted("first", "too short", "second")
    with use_models(model):
        state = await run_solver(chain(generate(), self_critique()), a_state("Why?"), generate_with(model))
    assert [role for role, _ in turns(state)] == ["user", "assistant", "user", "assistant"]
    assert all(word in turns(state)[2][1] for word in ("Why?", "first", "too short"))
    assert state.output.completion == "second"


async def test_the_critic_may_be_another_model_with_templates_of_its_own() -> None:
    model, critic = scripted("first", "second"), scripted("bad")
    critique = self_critique("C {question}|{completion}|{k}", "D {question}|{completion}|{critique}", critic)
    state = await run_solver(chain(generate(), critique), a_state("Why?", metadata={"k": "m"}), generate_with(model))
    assert turns(state)[2] == ("user", "D Why?|first|bad")


async def test_forks_go_on_from_copies() -> None:
    results: list[TaskState] = []

    @solver
    def forking() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.store.set("base", 1)
            branches: list[Solver] = [chain(user_message(name), answer()) for name in ("a", "b")]
            results.extend(await fork(state, branches))
            results.append(await fork(state, user_message("c")))
            return state

        return solve

    @solver
    def answer() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.store.set("base", state.user_prompt.text)
            return await generate(state)

        return solve

    state = await run_solver(forking(), a_state(), generate_with(scripted("one", "two")))
    assert [turns(result)[1] for result in results] == [("user", "a"), ("user", "b"), ("user", "c")]
    assert {result.output.completion for result in results[:2]} == {"one", "two"}  # they run at the same time
    assert [result.store.get("base") for result in results] == ["a", "b", 1]
    assert (turns(state), state.store.get("base")) == ([("user", "question")], 1)


async def test_a_branch_that_fails_fails_the_fork() -> None:
    @solver
    def bad() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            raise ValueError("branch")

        return solve

    @solver
    def forking() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            await fork(state, [bad(), user_message("x")])
            return state

        return solve

    with pytest.raises(ValueError, match="branch"):
        await run_solver(forking(), a_state(), generate_with(scripted()))


async def test_a_fork_needs_a_running_solver() -> None:
    with pytest.raises(RuntimeError, match="no solver is running"):
        await fork(a_state(), user_message("x"))
