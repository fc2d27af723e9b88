"""A model that says what it is told to, and the states of tests that use it."""

from __future__ import annotations

from typing import Any

from proctor.model import Model, get_model
from proctor.schema import ChatMessage, ModelOutput, ToolCall
from proctor.solver import Generate, TaskState, ToolCalls, input_messages, model_generate

__all__ = ["a_state", "generate_with", "scripted", "tool_calls", "turns"]


def scripted(*outputs: str | ModelOutput) -> Model:
    """A model that gives ``outputs`` in turn, each once."""
    made = [ModelOutput.from_content("mock/model", each) if isinstance(each, str) else each for each in outputs]
    return get_model("mock/model", memoize=False, custom_outputs=made)


def tool_calls(*calls: tuple[str, dict[str, Any]], text: str = "") -> ModelOutput:
    """An output that calls tools."""
    output = ModelOutput.for_tool_call("mock/model", "unused", {}, content=text)
    output.message.tool_calls = [
        ToolCall(id=f"call-{number}", function=function, arguments=arguments)
        for number, (function, arguments) in enumerate(calls)
    ]
    return output


def a_state(input: str | list[ChatMessage] = "question", **fields: Any) -> TaskState:
    """A state at its start."""
    return TaskState("mock/model", 1, 1, input, input_messages(input), **fields)


def generate_with(model: Model) -> Generate:
    """What the engine hands to solvers."""

    async def generate(state: TaskState, tool_calls: ToolCalls = "loop", **kwargs: Any) -> TaskState:
        return await model_generate(model, state, tool_calls)

    return generate


def turns(state: Any) -> list[tuple[str, str]]:
    """The roles and texts of a conversation."""
    return [(message.role, message.text) for message in state.messages]
