"""Agents as solvers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.agent._agent import Agent, AgentState, agent_name
from proctor.agent._run import run_in_span
from proctor.limits import Limit, apply_limits
from proctor.registry import RegistryInfo, is_registered, registry_info, tag
from proctor.solver import Generate, Solver, TaskState, register_adapter

__all__ = ["as_solver"]


def as_solver(agent: Agent, limits: Sequence[Limit] = (), **agent_kwargs: Any) -> Solver:
    """A solver that lets ``agent`` work on the sample's conversation.

    Args:
        agent: the agent.
        limits: what it may use, such as ``[token_limit(50_000)]``; one that runs out ends the sample, which is scored.
        agent_kwargs: further arguments of the agent.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        working = AgentState(messages=state.messages)
        try:
            with apply_limits([limit.copy() for limit in limits]):
                working = await run_in_span(agent, working, None, agent_kwargs)
        finally:
            # Also when a limit ended the agent: what it did until then is scored.
            state.messages = working.messages
            if not working.output.empty:
                state.output = working.output
        return state

    info = registry_info(agent) if is_registered(agent, "agent") else RegistryInfo("agent", agent_name(agent))
    return tag(solve, RegistryInfo("solver", info.name, info.params, info.params_passed))


register_adapter("agent", as_solver)
