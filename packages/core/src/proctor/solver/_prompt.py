"""Solvers that write messages: system, user and assistant messages, prompt templates, chain of thought."""

from __future__ import annotations

from typing import Any

from proctor.contracts import UsageError
from proctor.schema import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from proctor.solver._solver import Generate, Solver, solver
from proctor.solver._state import TaskState
from proctor.solver._template import fill, fill_from_state, placeholders, template_text, warn_unless

__all__ = [
    "append_system_message",
    "assistant_message",
    "chain_of_thought",
    "prompt_template",
    "system_message",
    "user_message",
]

CHAIN_OF_THOUGHT = """\
{prompt}

Think through the problem step by step before you answer. Then give your answer on a last line of its own, in the form \
"ANSWER: $ANSWER" (without the quotes), where $ANSWER is the answer to the question."""


@solver
def system_message(template: str, **params: Any) -> Solver:
    """Add a system message, after those that are there already.

    Args:
        template: the text, or a file that holds it. ``{name}`` stands for a parameter, a value of the store or of the
            sample's metadata; a name that is none of them stays as it is.
        params: parameters of the template.
    """
    text = template_text(template)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        content = fill_from_state(text, state, **params)
        append_system_message(state.messages, ChatMessageSystem(content=content))
        return state

    return solve


@solver
def user_message(template: str, **params: Any) -> Solver:
    """Append a user message.

    Args:
        template: the text, or a file that holds it; filled in as in ``system_message``.
        params: parameters of the template.
    """
    text = template_text(template)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.messages.append(ChatMessageUser(content=fill_from_state(text, state, **params)))
        return state

    return solve


@solver
def assistant_message(template: str, **params: Any) -> Solver:
    """Append an assistant message, as if the model had said it.

    Args:
        template: the text, or a file that holds it; filled in as in ``system_message``.
        params: parameters of the template.
    """
    text = template_text(template)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        content = fill_from_state(text, state, **params)
        state.messages.append(ChatMessageAssistant(content=content, model=str(state.model)))
        return state

    return solve


@solver
def prompt_template(template: str, **params: Any) -> Solver:
    """Rewrite the user prompt (the last user message).

    Args:
        template: the new text, or a file that holds it. ``{prompt}`` stands for the present text; other names are
            filled in as in ``system_message``.
        params: parameters of the template.

    Warns when no sample's own text has a place in the template, so that all would be asked the same.

    Raises:
        UsageError: (when solving) if the template has no ``{prompt}`` and none of its other names is known.
    """
    text = template_text(template)
    others = placeholders(text) - params.keys()
    lost = "prompt" not in placeholders(text)
    if not others - {"prompt"}:
        warn_unless("prompt", text, "prompt_template() leaves the question of every sample out")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        prompt = state.user_prompt
        if lost and others and others.isdisjoint(state.metadata.keys() | state.store.keys()):
            raise UsageError(
                f"prompt_template() has no {{prompt}}, and none of its names ({', '.join(sorted(others))}) is a "
                f"parameter, in the store or in the metadata of sample {state.sample_id!r}: the question would be "
                f"lost. Write {{prompt}} where it is to stand."
            )
        prompt.text = fill_from_state(text, state, **{"prompt": prompt.text, **params})
        return state

    return solve


@solver
def chain_of_thought(template: str = CHAIN_OF_THOUGHT) -> Solver:
    """Rewrite the user prompt so that the model reasons first and ends with a line ``ANSWER: ...``.

    Args:
        template: the new text, or a file that holds it, with ``{prompt}`` for the present text.

    Raises:
        UsageError: if there is no ``{prompt}`` in the template.
    """
    text = template_text(template)
    if "prompt" not in placeholders(text):
        raise UsageError("the template of chain_of_thought() must contain {prompt}: the question would be lost")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        prompt = state.user_prompt
        prompt.text = fill(text, prompt=prompt.text)
        return state

    return solve


def append_system_message(messages: list[ChatMessage], message: ChatMessageSystem) -> None:
    """Put ``message`` behind the last system message of ``messages``, or first if there is none."""
    last = max((index for index, each in enumerate(messages) if isinstance(each, ChatMessageSystem)), default=-1)
    messages.insert(last + 1, message)
