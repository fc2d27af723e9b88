"""What an agent is, and how a function becomes one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, Protocol, overload, runtime_checkable

from proctor.registry import RegistryInfo, component, is_registered, registry_info, tag
from proctor.schema import ChatCompletionChoice, ChatMessage, ChatMessageAssistant, ModelOutput
from proctor.solver import MessageList

__all__ = [
    "Agent",
    "AgentState",
    "agent",
    "agent_description",
    "agent_name",
    "agent_with",
    "is_agent",
    "named",
]

P = ParamSpec("P")


class AgentState:
    """What an agent reads and changes: a conversation and an output.

    Args:
        messages: the conversation; a list that already keeps ids (``TaskState.messages``) is taken over, not copied.
    """

    def __init__(self, *, messages: Iterable[ChatMessage]) -> None:
        self._messages = messages if isinstance(messages, MessageList) else MessageList(messages)
        self._output: ModelOutput | None = None

    @property
    def messages(self) -> list[ChatMessage]:
        """The conversation."""
        return self._messages

    @messages.setter
    def messages(self, messages: Iterable[ChatMessage]) -> None:
        self._messages = messages if isinstance(messages, MessageList) else MessageList(messages)

    @property
    def output(self) -> ModelOutput:
        """The agent's output; until it has set one, its last assistant message."""
        if self._output is None:
            said = next((each for each in reversed(self._messages) if isinstance(each, ChatMessageAssistant)), None)
            choices = [] if said is None else [ChatCompletionChoice(message=said, stop_reason="stop")]
            made = ModelOutput(model=(said.model if said is not None else None) or "", choices=choices)
            if said is None:
                self._output = made  # to be changed in place
            return made
        return self._output

    @output.setter
    def output(self, output: ModelOutput) -> None:
        self._output = output

    def __deepcopy__(self, memo: dict[int, Any]) -> AgentState:
        made = AgentState(messages=[message.model_copy(deep=True) for message in self._messages])
        made._output = copy.deepcopy(self._output, memo)
        return made


@runtime_checkable
class Agent(Protocol):
    """Takes a conversation further; further parameters are given where the agent is used."""

    async def __call__(self, state: AgentState, *args: Any, **kwargs: Any) -> AgentState:
        """Change ``state`` and return it."""
        ...


@overload
def agent(func: Callable[P, Agent]) -> Callable[P, Agent]: ...


@overload
def agent(
    func: None = None, *, name: str | None = None, description: str | None = None
) -> Callable[[Callable[P, Agent]], Callable[P, Agent]]: ...


def agent(
    func: Callable[P, Agent] | None = None, *, name: str | None = None, description: str | None = None
) -> Callable[P, Agent] | Callable[[Callable[P, Agent]], Callable[P, Agent]]:
    """Register a function that makes an agent.

    Args:
        func: the function, when the decorator is written without parentheses.
        name: what the agent is called; by default the function's name.
        description: what it does, for models that may call it or hand over to it; by default the docstring of the
            agent's own function.
    """
    attribs = {"description": description}
    if func is not None:
        return component("agent", func, name, attribs)
    return lambda factory: component("agent", factory, name, attribs)


_NAMED = "__proctor_agent__"


def named(agent: Agent, name: str | None, description: str | None) -> Agent:
    """Give ``agent`` a name and a description of its own, beside those of the function that makes it."""
    setattr(agent, _NAMED, (name, description))
    return agent


def agent_with(agent: Agent, *, name: str | None = None, description: str | None = None) -> Agent:
    """A copy of ``agent`` with another name or description; ``agent`` stays as it is."""

    async def execute(state: AgentState, *args: Any, **kwargs: Any) -> AgentState:
        return await agent(state, *args, **kwargs)

    execute.__wrapped__ = agent  # type: ignore[attr-defined]  # the signature and the docstring are those of the agent
    execute.__doc__ = agent.__doc__
    info = registry_info(agent) if is_registered(agent, "agent") else RegistryInfo("agent", agent_name(agent))
    return tag(named(execute, name or agent_name(agent), description or agent_description(agent)), info)


def is_agent(candidate: object) -> bool:
    """Whether ``candidate`` was made by an ``@agent`` function."""
    return is_registered(candidate, "agent")


def agent_name(agent: Agent) -> str:
    """What ``agent`` is called."""
    name, _ = getattr(agent, _NAMED, (None, None))
    if name:
        return str(name)
    if is_registered(agent, "agent"):
        return registry_info(agent).name.rpartition("/")[2]
    return getattr(agent, "__name__", None) or type(agent).__name__


def agent_description(agent: Agent) -> str | None:
    """What was said of ``agent`` where it was made; its docstring is not looked at."""
    _, description = getattr(agent, _NAMED, (None, None))
    if description:
        return str(description)
    return registry_info(agent).attribs.get("description") if is_registered(agent, "agent") else None
