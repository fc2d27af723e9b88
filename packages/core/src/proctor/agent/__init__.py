"""Agents: what takes a conversation further, alone, as a solver, as a tool, or by handoff."""

from proctor.agent._agent import Agent, AgentState, agent, agent_name, agent_with, is_agent
from proctor.agent._as_solver import as_solver
from proctor.agent._as_tool import as_tool
from proctor.agent._filter import MessageFilter, content_only, last_message, remove_tools, trim_messages
from proctor.agent._handoff import handoff
from proctor.agent._react import react
from proctor.agent._run import run
from proctor.agent._score import score, use_scorers
from proctor.agent._types import AgentAttempts, AgentContinue, AgentPrompt, AgentSubmit

__all__ = [
    "Agent",
    "AgentAttempts",
    "AgentContinue",
    "AgentPrompt",
    "AgentState",
    "AgentSubmit",
    "MessageFilter",
    "agent",
    "agent_name",
    "agent_with",
    "as_solver",
    "as_tool",
    "content_only",
    "handoff",
    "is_agent",
    "last_message",
    "react",
    "remove_tools",
    "run",
    "score",
    "trim_messages",
    "use_scorers",
]
