"""The messages of a sample: a list that keeps ids and the message limit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex, overload

from proctor.limits import sample_limits
from proctor.schema import ChatMessage, ChatMessageUser, assembled, quick_id

__all__ = ["MessageList", "input_messages"]


def _known(message: ChatMessage) -> ChatMessage:
    if message.id is None:
        message.id = quick_id()
    return message


class MessageList(list[ChatMessage]):
    """A list of messages in which each has an id.

    Growing it past the message limit that is in force raises ``LimitExceededError``, so a solver that talks to a model
    by itself is held to the limit as well.
    """

    __slots__ = ()

    def __init__(self, messages: Iterable[ChatMessage] = ()) -> None:
        super().__init__(messages)
        for message in self:
            if message.id is None:
                message.id = quick_id()

    def append(self, message: ChatMessage, /) -> None:
        _check(len(self) + 1)
        super().append(_known(message))

    def extend(self, messages: Iterable[ChatMessage], /) -> None:
        new = [_known(message) for message in messages]
        _check(len(self) + len(new))
        super().extend(new)

    def insert(self, index: SupportsIndex, message: ChatMessage, /) -> None:
        _check(len(self) + 1)
        super().insert(index, _known(message))

    def __iadd__(self, messages: Iterable[ChatMessage], /) -> MessageList:  # type: ignore[override, misc]  # as list's own
        self.extend(messages)
        return self

    @overload
    def __setitem__(self, index: SupportsIndex, message: ChatMessage, /) -> None: ...

    @overload
    def __setitem__(self, index: slice, message: Iterable[ChatMessage], /) -> None: ...

    def __setitem__(self, index: SupportsIndex | slice, message: ChatMessage | Iterable[ChatMessage], /) -> None:
        if isinstance(index, slice):
            new = [_known(item) for item in message]  # type: ignore[arg-type]  # the overloads tie the two together
            super().__setitem__(index, new)
            _check(len(self))
        else:
            super().__setitem__(index, _known(message))  # type: ignore[arg-type]  # as above


def _check(length: int) -> None:
    limits = sample_limits()
    if limits is not None:
        limits.check_messages(length, growing=True)


def input_messages(input: str | list[ChatMessage]) -> list[ChatMessage]:
    """A sample's input as messages of its own: copies, since solvers change them, marked ``source="input"``."""
    if isinstance(input, str):
        fields = {"id": quick_id(), "content": input, "source": "input", "metadata": None, "role": "user"}
        return [assembled(ChatMessageUser, {**fields, "tool_call_id": None})]
    messages = [message.model_copy(deep=True) for message in input]
    for message in messages:
        message.source = "input"
    return messages
