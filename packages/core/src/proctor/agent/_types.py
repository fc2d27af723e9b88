"""The settings of ``react``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from proctor.agent._agent import AgentState
from proctor.schema import Score
from proctor.scorer import value_to_float
from proctor.tool import Tool, ToolDef

__all__ = ["AgentAttempts", "AgentContinue", "AgentPrompt", "AgentSubmit"]

AgentContinue: TypeAlias = Callable[[AgentState], Awaitable[bool | str | AgentState]]
"""Called after each turn: ``True`` goes on (with the standard message when no tool was called), ``False`` stops, a text
is sent as a user message, and a state replaces the present one."""

HANDOFF_PROMPT = """\
You are one of several agents that work together. An agent has its own instructions and tools, and can hand the \
conversation over to another one that is better suited, by calling a handoff tool (usually named \
`transfer_to_<agent_name>`). Handoffs happen in the background: don't mention them to the user."""

ASSISTANT_PROMPT = """\
You are a helpful assistant who tries to submit the best possible answer. Tools are at your disposal to find it; you \
see the result of a call right after you made it. Make calls that don't depend on each other in one message, and \
others one after the other. Before you act, reason: say which calls you are going to make, and how they serve your \
plan."""

SUBMIT_PROMPT = "When you are done and have an answer, report it by calling the {submit}() tool."


class AgentPrompt(NamedTuple):
    """The parts of the system message; ``None`` leaves a part out. ``{submit}`` is the name of the submit tool."""

    instructions: str | None = None
    handoff_prompt: str | None = HANDOFF_PROMPT
    assistant_prompt: str | None = ASSISTANT_PROMPT
    submit_prompt: str | None = SUBMIT_PROMPT


class AgentSubmit(NamedTuple):
    """The tool with which the agent submits its answer.

    ``tool`` replaces the standard one. The answer is appended to the completion after ``answer_delimiter``, or replaces
    it (``answer_only``). Its calls are taken out of the conversation at the end unless ``keep_in_messages`` is set.
    """

    name: str | None = None
    description: str | None = None
    tool: Tool | ToolDef | None = None
    answer_only: bool = False
    answer_delimiter: str = "\n\n"
    keep_in_messages: bool = False


class AgentAttempts(NamedTuple):
    """How often the agent may submit, what it is told after a wrong answer, and which number a score is (1: right)."""

    attempts: int = 1
    incorrect_message: str | Callable[[AgentState, list[Score]], Awaitable[str]] = (
        "Your submission was not correct. Go on and try to find the correct answer."
    )
    score_value: Callable[[Any], float] = value_to_float()
