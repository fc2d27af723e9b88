"""Tools that take the whole conversation over, instead of answering with a result (handoffs between agents)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from proctor.schema import ChatMessage, ModelOutput

__all__ = ["Conversation", "ConversationTool"]


class Conversation(NamedTuple):
    """What came of it: messages to go on from, after the tool's own answer, and perhaps a model output."""

    messages: list[ChatMessage]
    output: ModelOutput | None


class ConversationTool(ABC):
    """A tool to which ``execute_tools`` gives the conversation."""

    agent: str
    """The name of the agent that takes over."""

    @abstractmethod
    def accepted(self) -> str:
        """What the tool answers at once; the conversation that it is given ends with this answer."""

    @abstractmethod
    async def converse(self, messages: list[ChatMessage], arguments: dict[str, Any]) -> Conversation:
        """Carry ``messages`` on and return what is new."""

    async def __call__(self, **arguments: Any) -> str:
        """Answer outside a conversation."""
        return self.accepted()
