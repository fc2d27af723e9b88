"""Run an agent."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, overload

from proctor.agent._agent import Agent, AgentState, agent_name
from proctor.limits import Limit, LimitExceededError, apply_limits
from proctor.log import span
from proctor.schema import ChatMessage
from proctor.solver import input_messages

__all__ = ["run", "run_in_span"]


@overload
async def run(
    agent: Agent,
    input: str | list[ChatMessage] | AgentState,
    limits: None = None,
    *,
    name: str | None = None,
    **agent_kwargs: Any,
) -> AgentState: ...


@overload
async def run(
    agent: Agent,
    input: str | list[ChatMessage] | AgentState,
    limits: Sequence[Limit],
    *,
    name: str | None = None,
    **agent_kwargs: Any,
) -> tuple[AgentState, LimitExceededError | None]: ...


async def run(
    agent: Agent,
    input: str | list[ChatMessage] | AgentState,
    limits: Sequence[Limit] | None = None,
    *,
    name: str | None = None,
    **agent_kwargs: Any,
) -> AgentState | tuple[AgentState, LimitExceededError | None]:
    """Run ``agent`` and return the state that it comes to.

    Args:
        agent: the agent.
        input: what it starts from: the text of a user message, a conversation, or a state; none is changed.
        limits: what the agent may use, such as ``[token_limit(50_000)]``. With them, a pair is returned: the state as
            far as the agent came, and the limit that ended it (None: none did).
        name: what the transcript calls this run; by default the agent's name.
        agent_kwargs: further arguments of the agent.
    """
    state = deepcopy(input) if isinstance(input, AgentState) else AgentState(messages=input_messages(input))
    if limits is None:
        return await run_in_span(agent, state, name, agent_kwargs)
    with apply_limits(limits, catch_errors=True) as scope:
        state = await run_in_span(agent, state, name, agent_kwargs)
    return state, scope.limit_error


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
