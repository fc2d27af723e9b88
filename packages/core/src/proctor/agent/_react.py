"""The ReAct agent: reason, act through tools, look at what came of it, until an answer is submitted.

The scheme is that of Yao et al., "ReAct: Synergizing Reasoning and Acting in Language Models" (2022), with a tool for
the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Literal, TypeAlias

from proctor.agent._agent import Agent, AgentState, agent, named
from proctor.agent._filter import MessageFilter, trim_messages
from proctor.agent._score import score
from proctor.agent._submit import Submission
from proctor.agent._types import AgentAttempts, AgentContinue, AgentPrompt, AgentSubmit
from proctor.log import transcript
from proctor.model import Model, get_model
from proctor.registry import is_registered
from proctor.schema import ChatMessageSystem, ChatMessageUser
from proctor.solver import fill
from proctor.tool import ConversationTool, Tool, ToolDef, ToolSource, execute_tools, tool_defs

__all__ = ["react"]

CONTINUE = "Please go on to the next step, as you think best."
CONTINUE_OR_SUBMIT = (
    f"{CONTINUE} If you believe that you are done, call the `{{submit}}()` tool with your final answer."
)

Tools: TypeAlias = Sequence[Tool | ToolDef | ToolSource]
Truncation: TypeAlias = Literal["auto", "disabled"] | MessageFilter


@agent
def react(
    *,
    name: str | None = None,
    description: str | None = None,
    prompt: str | AgentPrompt | None = AgentPrompt(),  # noqa: B008  # immutable
    tools: Tools | None = None,
    model: str | Model | Agent | None = None,
    attempts: int | AgentAttempts = 1,
    submit: AgentSubmit | bool | None = None,
    on_continue: str | AgentContinue | None = None,
    retry_refusals: int | None = None,
    truncation: Truncation = "disabled",
) -> Agent:
    """An agent that calls tools in a loop until it submits an answer.

    Args:
        name: what the agent is called (``react`` by default).
        description: what it does, for agents that call it or hand over to it.
        prompt: the instructions, the parts of the system message, or ``None`` for no system message.
        tools: what it may call.
        model: the model, or an agent that stands for one (called with the state and the tools); by default the model
            that is evaluated.
        attempts: how often it may submit; a wrong answer is reported to it as long as attempts are left.
        submit: the submit tool; ``False``: none, and the agent is done when it calls no tool.
        on_continue: a text that is sent when no tool was called, or a function that decides after each turn.
        retry_refusals: how often a refusal (stop reason ``content_filter``) is asked again.
        truncation: what happens when the model's context is full: the agent ends (``disabled``), the oldest turns are
            dropped (``auto``), or a function returns the messages to go on with.

    Raises:
        ValueError: if ``on_continue`` is a text and there is no submit tool.
    """
    submission = None if submit is False else Submission(submit if isinstance(submit, AgentSubmit) else AgentSubmit())
    if submission is None and isinstance(on_continue, str):
        raise ValueError("a text for on_continue needs a submit tool: without one, a message without calls is the end")
    given = list(tools or [])
    loop = _Loop(
        tools=given if submission is None else [*given, submission.tool],
        model=model,
        attempts=attempts if isinstance(attempts, AgentAttempts) else AgentAttempts(attempts),
        submission=submission,
        on_continue=on_continue,
        retry_refusals=retry_refusals or 0,
        truncation=truncation,
    )

    async def execute(state: AgentState) -> AgentState:
        text = _system_text(prompt, given, submission)
        if text:
            state.messages.insert(0, ChatMessageSystem(content=text))
        return await loop.run(state)

    return named(execute, name, description)


def _system_text(prompt: str | AgentPrompt | None, tools: Tools, submission: Submission | None) -> str | None:
    if prompt is None:
        return None
    parts = AgentPrompt(instructions=prompt) if isinstance(prompt, str) else prompt
    hands_over = any(_hands_over(tool) for tool in tools)
    said = [parts.instructions, parts.handoff_prompt if hands_over else None, parts.assistant_prompt]
    text = "\n\n".join(part for part in said if part)
    if submission is not None and parts.submit_prompt:
        text = "\n".join(part for part in (text, fill(parts.submit_prompt, submit=submission.name)) if part)
    return text or None


def _hands_over(tool: Tool | ToolDef | ToolSource) -> bool:
    definition = tool if isinstance(tool, ToolDef) else getattr(tool, "definition", None)
    return isinstance(definition, ToolDef) and isinstance(definition.tool, ConversationTool)


class _Loop:
    """The loop of one ``react`` agent; it keeps nothing from one run to the next."""

    def __init__(
        self,
        *,
        tools: Tools,
        model: str | Model | Agent | None,
        attempts: AgentAttempts,
        submission: Submission | None,
        on_continue: str | AgentContinue | None,
        retry_refusals: int,
        truncation: Truncation,
    ) -> None:
        self._tools = tools
        self._model = model
        self._attempts = attempts
        self._submission = submission
        self._on_continue = on_continue
        self._retry_refusals = retry_refusals
        self._truncation = truncation

    async def run(self, state: AgentState) -> AgentState:
        attempts = 0
        while True:
            tools = await tool_defs(self._tools)
            state = await self._turn(state, tools)
            if state.output.stop_reason == "model_length":
                shorter = await self._shortened(state)
                if shorter is None:
                    break
                state = shorter
                continue
            if not state.output.empty and state.output.message.tool_calls:
                result = await execute_tools(state.messages, tools)
                state.messages.extend(result.messages)
                if result.output is not None:
                    state.output = result.output
                answer = self._submission.find(result.messages) if self._submission is not None else None
                if self._submission is not None and answer is not None:
                    self._submission.record(state, answer)
                    attempts += 1
                    if attempts >= self._attempts.attempts or await self._is_right(state):
                        break
                    continue
            goes_on, state = await self._continue(state)
            if not goes_on:
                break
        if self._submission is not None:
            self._submission.clean(state)
        return state

    async def _turn(self, state: AgentState, tools: list[ToolDef]) -> AgentState:
        """One message of the model, or of the agent that stands for it."""
        for left in range(self._retry_refusals, -1, -1):
            if is_registered(self._model, "agent"):
                return await _as_agent(self._model, state, tools)
            model = self._model if isinstance(self._model, Model) else get_model(self._model)  # type: ignore[arg-type]  # agents were dealt with above
            state.output = await model.generate(state.messages, tools=tools)
            if state.output.stop_reason != "content_filter" or left == 0:
                break
        if not state.output.empty:
            state.messages.append(state.output.message)
        return state

    async def _shortened(self, state: AgentState) -> AgentState | None:
        if self._truncation == "disabled":
            transcript().info("The agent ended: the model's context is full.", source="proctor")
            return None
        shorten = trim_messages if self._truncation == "auto" else self._truncation
        shorter = await shorten(list(state.messages[:-1]))
        if len(shorter) >= len(state.messages) - 1:
            transcript().info("The agent ended: the model's context is full and can't be cut.", source="proctor")
            return None
        state.messages = shorter
        transcript().info("The model's context was full: the oldest messages were dropped.", source="proctor")
        return state

    async def _is_right(self, state: AgentState) -> bool:
        """Whether the answer is right; if not, the agent is told."""
        scores = await score(state)
        if scores and self._attempts.score_value(scores[0].value) == 1.0:
            return True
        message = self._attempts.incorrect_message
        text = message if isinstance(message, str) else await _resolved(message(state, scores))
        state.messages.append(ChatMessageUser(content=text))
        return False

    async def _continue(self, state: AgentState) -> tuple[bool, AgentState]:
        """Whether to go on, and from what; a message that says so is appended where one is needed."""
        called = not state.output.empty and bool(state.output.message.tool_calls)
        answer: bool | str | AgentState
        if callable(self._on_continue):
            answer = await self._on_continue(state)
            if isinstance(answer, AgentState):
                return True, answer
            if isinstance(answer, str):
                self._tell(state, answer)
                return True, state
            if not answer:
                return False, state
        elif self._submission is None:
            return called, state
        if not called:
            standard = CONTINUE if self._submission is None else CONTINUE_OR_SUBMIT
            self._tell(state, self._on_continue if isinstance(self._on_continue, str) else standard)
        return True, state

    def _tell(self, state: AgentState, text: str) -> None:
        name = self._submission.name if self._submission is not None else "submit"
        state.messages.append(ChatMessageUser(content=fill(text, submit=name)))


async def _as_agent(model: object, state: AgentState, tools: list[ToolDef]) -> AgentState:
    assert isinstance(model, Agent)
    return await model(state, tools)


async def _resolved(text: Awaitable[str]) -> str:
    return await text
