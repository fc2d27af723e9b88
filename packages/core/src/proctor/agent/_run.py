"""Run an agent."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from proctor.agent._agent import Agent, AgentState, agent_name
from proctor.log import span
from proctor.schema import ChatMessage
from proctor.solver import input_messages

__all__ = ["run", "run_in_span"]


async def run(
    agent: Agent, input: str | list[ChatMessage] | AgentState, *, name: str | None = None, **agent_kwargs: Any
) -> AgentState:
    """Run ``agent`` and return the state that it comes to.

    Args:
        agent: the agent.
        input: what it starts from: the text of a user message, a conversation, or a state; none is changed.
        name: what the transcript calls this run; by default the agent's name.
        agent_kwargs: further arguments of the agent.
    """
    state = deepcopy(input) if isinstance(input, AgentState) else AgentState(messages=input_messages(input))
    return await run_in_span(agent, state, name, agent_kwargs)


async def run_in_span(agent: Agent, state: AgentState, name: str | None, arguments: dict[str, Any]) -> AgentState:
    """Run ``agent`` on ``state`` itself, in a span.

    Raises:
        TypeError: if the agent doesn't return a state.
    """
    label = name or agent_name(agent)
    with span(label, type="agent"):
        after = await agent(state, **arguments)
    if not isinstance(after, AgentState):
        raise TypeError(f"agent {label!r} returned {type(after).__name__}, not the state: end it with 'return state'")
    return after
