"""Agents as tools: called with a text, they answer with one, and the caller keeps the conversation."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from proctor.agent._agent import Agent, agent_description, agent_name
from proctor.agent._run import run
from proctor.limits import Limit, apply_limits
from proctor.schema import ToolParam, ToolParams
from proctor.tool import Tool, ToolDef, ToolResult, ToolSignature, set_tool_signature, tool_signature

__all__ = ["agent_signature", "as_tool"]


def agent_signature(agent: Agent, description: str | None, bound: dict[str, Any]) -> ToolSignature:
    """What a model is told of ``agent``: its description, and its parameters beside the state and those in ``bound``.

    Raises:
        ValueError: if the agent or one of the parameters has no description.
    """
    name = agent_name(agent)
    read = tool_signature(inspect.unwrap(agent))
    text = description or agent_description(agent) or read.description
    if not text:
        raise ValueError(
            f"agent {name!r} has no description: give one with @agent(description=...), with the description "
            "argument, or in the docstring of the agent's own function"
        )
    state = next(iter(read.parameters.properties), None)
    hidden = {state, *bound}
    properties = {key: param for key, param in read.parameters.properties.items() if key not in hidden}
    silent = [key for key, param in properties.items() if not param.description]
    if silent:
        raise ValueError(
            f"agent {name!r}: no description of parameter {', '.join(map(repr, silent))}; add it under 'Args:' in the "
            "docstring of the agent's own function"
        )
    required = [key for key in read.parameters.required if key in properties]
    types = {key: hint for key, hint in read.types.items() if key in properties}
    return ToolSignature(text, ToolParams(properties=properties, required=required), types)


def as_tool(
    agent: Agent,
    description: str | None = None,
    limits: Sequence[Limit] = (),
    max_output: int | None = 0,
    **agent_kwargs: Any,
) -> Tool:
    """A tool that runs ``agent`` on a conversation of its own and answers with its output.

    Args:
        agent: the agent.
        description: what the model is told; by default the agent's description.
        limits: what each call may use, such as ``[token_limit(50_000)]``; the caller is told when one ran out.
        max_output: bytes of the output that the caller sees at most (0: no limit).
        agent_kwargs: further arguments of the agent; the model sets those that are not given here.
    """
    signature = agent_signature(agent, description, agent_kwargs)
    question = ToolParam(type="string", description="Input message.")
    signature.parameters.properties = {"input": question, **signature.parameters.properties}
    signature.parameters.required = ["input", *signature.parameters.required]

    async def execute(input: str, **arguments: Any) -> ToolResult:
        with apply_limits([limit.copy() for limit in limits]):
            state = await run(agent, input, **agent_kwargs, **arguments)
        return state.output.message.content if not state.output.empty else ""

    set_tool_signature(execute, signature)
    definition = ToolDef(
        execute, agent_name(agent), signature.description, signature.parameters, False, max_output=max_output
    )
    return definition.as_tool()
