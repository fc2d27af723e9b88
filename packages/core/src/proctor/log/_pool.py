"""What the model events of a sample share: each message and each part of a raw call is kept, and encoded, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from proctor.log._condense import Condenser, has_long_text
from proctor.log._json import decode, encode
from proctor.schema import ChatMessage, Event, EventsData, ModelEvent, message_changes

__all__ = ["EventList", "MessagePool", "Ranges"]

_LARGE = 500_000  # characters of a message that are not encoded while the sample runs

Ranges = list[tuple[int, int]]


class MessagePool:
    """The pool of one sample: encoded messages and call parts, and the attachments they refer to.

    ``record`` costs what is new in an event: of a conversation that grew, only new messages are looked at one by one.
    """

    __slots__ = (
        "_by_identity",
        "_calls",
        "_changes",
        "_large",
        "_last",
        "_last_refs",
        "_messages",
        "_refs",
        "condenser",
    )

    def __init__(self, condenser: Condenser | None = None, known: EventsData | None = None) -> None:
        self.condenser = condenser or Condenser()
        self._messages: dict[bytes, int] = {}
        self._large: dict[int, ChatMessage] = {}
        self._calls: dict[bytes, int] = {}
        self._by_identity: dict[int, tuple[ChatMessage, tuple[Any, ...], int]] = {}
        self._refs: dict[str, Ranges] = {}
        self._last: list[ChatMessage] = []
        self._changes = 0
        self._last_refs: Ranges = []
        if known is not None:  # references into it must stay valid, so its order is kept and nothing is merged
            for index, message in enumerate(known.messages):
                self._messages[_distinct(encode(message), self._messages)] = index
            for index, part in enumerate(known.calls):
                self._calls[_distinct(encode(part), self._calls)] = index

    def record(self, event: ModelEvent) -> Ranges:
        """The ranges of ``event.input`` in the pool, taken now and remembered for ``refs_of``."""
        refs = self._ranges(event.input)
        if event.uuid is not None:
            self._refs[event.uuid] = refs
        return refs

    def refs_of(self, event: ModelEvent) -> Ranges:
        """The ranges that were taken when ``event`` was recorded, or else those of its input as it is now."""
        known = self._refs.get(event.uuid) if event.uuid is not None else None
        return known if known is not None else self._ranges(event.input)

    def _ranges(self, messages: Sequence[ChatMessage]) -> Ranges:
        before, changes = len(self._last), message_changes()
        # List comparison takes the same object for equal, so this is one pass in C.
        grown = len(messages) >= before and messages[:before] == self._last
        if grown and changes != self._changes:
            # A message of which a field was set is another message, though the object is the same.
            grown = all(self._known(message) is not None for message in self._last)
        refs: Ranges = list(self._last_refs) if grown else []
        for message in messages[before:] if grown else messages:
            _append(refs, self._place(message))
        self._last, self._changes, self._last_refs = list(messages), changes, refs
        return refs

    def _place(self, message: ChatMessage) -> int:
        known = self._known(message)
        if known is not None:
            return known
        if _size(message) > _LARGE:
            # Left for whoever writes the sample: the event loop must not wait for megabytes. The copy stays as it is.
            place = len(self._messages)
            self._messages[b"large %d" % place] = place
            self._large[place] = message.model_copy()
        else:
            raw = self._encoded(message)
            place = self._messages.setdefault(raw, len(self._messages))
        self._by_identity[id(message)] = (message, tuple(message.__dict__.values()), place)
        return place

    def _encoded(self, message: ChatMessage) -> bytes:
        raw = encode(message)
        return encode(self.condenser.message(decode(raw))) if has_long_text(raw) else raw

    def _known(self, message: ChatMessage) -> int | None:
        """The place of this very object, if none of its fields holds another value than when it was encoded."""
        known = self._by_identity.get(id(message))
        if known is not None and known[0] is message and known[1] == tuple(message.__dict__.values()):
            return known[2]
        return None

    def call_ranges(self, parts: Iterable[Any]) -> Ranges:
        """The ranges of the messages of a raw request in the pool of call parts."""
        refs: Ranges = []
        for part in parts:
            raw = encode(part)
            if has_long_text(raw):
                raw = encode(self.condenser.texts(decode(raw)))
            _append(refs, self._calls.setdefault(raw, len(self._calls)))
        return refs

    def encoded(self) -> bytes:
        """The pool as ``events_data``; empty when nothing is in it."""
        if not self._messages and not self._calls:
            return b""
        messages = list(self._messages)
        for place, message in self._large.items():
            messages[place] = self._encoded(message)
        return b'{"messages":[%b],"calls":[%b]}' % (b",".join(messages), b",".join(self._calls))


def _size(message: ChatMessage) -> int:
    """About how many characters a message has."""
    content = message.content
    if isinstance(content, str):
        return len(content)
    return sum(len(value) for part in content for value in part.__dict__.values() if isinstance(value, str))


def _append(refs: Ranges, place: int) -> None:
    if refs and refs[-1][1] == place:
        refs[-1] = (refs[-1][0], place + 1)
    else:
        refs.append((place, place + 1))


class EventList(list[Event]):
    """Events, together with the pool that already holds the messages of the model events among them."""

    __slots__ = ("pool",)

    def __init__(self, events: Iterable[Event] = (), *, pool: MessagePool) -> None:
        super().__init__(events)
        self.pool = pool


def _distinct(raw: bytes, taken: dict[bytes, int]) -> bytes:
    """``raw``, with white space behind it (which JSON allows) until it is not in ``taken``."""
    while raw in taken:
        raw += b" "
    return raw
