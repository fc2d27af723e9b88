"""The solver that lets the model answer, and the loop behind ``generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proctor.schema import GenerateConfig, ToolFunction
from proctor.solver._solver import Generate, Solver, ToolCalls, solver
from proctor.solver._state import TaskState
from proctor.tool import execute_tools, tool_defs

if TYPE_CHECKING:
    from proctor.model import Model

__all__ = ["generate", "model_generate"]


@solver
def generate(tool_calls: ToolCalls = "loop", **kwargs: Any) -> Solver:
    """Let the model answer.

    Args:
        tool_calls: ``loop`` goes on until the model calls no tool any more, ``single`` resolves the first message's
            calls and stops, ``none`` leaves them unresolved.
        kwargs: ``cache``, and any field of ``GenerateConfig`` for this call alone.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await generate(state, tool_calls=tool_calls, **kwargs)

    return solve


async def model_generate(
    model: Model,
    state: TaskState,
    tool_calls: ToolCalls = "loop",
    cache: Any = False,
    config: GenerateConfig | None = None,
) -> TaskState:
    """Let ``model`` go on from ``state`` and resolve the tool calls that it makes.

    Args:
        model: the model to ask.
        state: the conversation, tools and tool choice; changed and returned.
        tool_calls: see ``generate``.
        cache: whether replies may come from the cache.
        config: settings of these calls, laid over the model's own.

    Raises:
        LimitExceededError: when the sample has no message or turn left.
    """
    tool_choice = state.tool_choice
    while True:
        # Asked for anew at each turn: a tool source may offer others by now.
        tools = await tool_defs(state.tools) if state.tools else []
        state.output = output = await model.generate(
            state.messages, tools=tools, tool_choice=tool_choice, config=config, cache=cache
        )
        if not output.choices:
            return state
        message = output.message
        state.messages.append(message)
        if tool_calls == "none" or state.completed or not message.tool_calls:
            return state
        result = await execute_tools(state.messages, tools, config.max_tool_output if config else None)
        state.messages.extend(result.messages)
        if result.output is not None:
            state.output = result.output
        if tool_calls == "single" or state.completed:
            return state
        if isinstance(tool_choice, ToolFunction):
            tool_choice = "auto"  # forced once; forcing it again would never let the model answer
