"""The solver that says which tools the model may call."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.schema import ToolChoice
from proctor.solver._solver import Generate, Solver, solver
from proctor.solver._state import TaskState
from proctor.tool import Tool, ToolDef, ToolSource

__all__ = ["use_tools"]


@solver
def use_tools(
    *tools: Tool | ToolDef | ToolSource | Sequence[Tool | ToolDef | ToolSource],
    tool_choice: ToolChoice | None = "auto",
    append: bool = False,
) -> Solver:
    """Say which tools the model may call from here on.

    Args:
        tools: tools, or lists of them. Without any, the tools stay and only ``tool_choice`` is set.
        tool_choice: ``auto``, ``any``, ``none`` or one function; ``None`` leaves it as it is.
        append: add to the tools that there are, instead of replacing them.
    """
    flat: list[Tool | ToolDef | ToolSource] = []
    for each in tools:
        if isinstance(each, Sequence):
            flat.extend(each)
        else:
            flat.append(each)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if flat:
            state.tools = [*state.tools, *flat] if append else flat
        if tool_choice is not None:
            state.tool_choice = tool_choice
        return state

    return solve
