"""The transcript: what happened in one sample, in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from proctor.log._changes import json_changes
from proctor.log._clock import now_iso
from proctor.log._json import decode, encode
from proctor.log._pool import EventList, MessagePool
from proctor.log._store import folded_store
from proctor.schema import (
    Event,
    InfoEvent,
    LoggerEvent,
    LoggingMessage,
    ModelEvent,
    SpanBeginEvent,
    SpanEndEvent,
    StoreEvent,
    assembled,
    quick_id,
    redact_text,
)

__all__ = ["Span", "Transcript", "begin_transcript", "span", "span_id", "transcript", "use_transcript"]

_span: ContextVar[str | None] = ContextVar("proctor_span", default=None)


class Transcript:
    """Takes events as they happen and stamps them with uuid, span, time and working time.

    Args:
        working_time: seconds of working time of the sample so far; without it, seconds since the transcript was made.
    """

    __slots__ = ("_events", "_pool", "working_time")

    def __init__(self, working_time: Callable[[], float] | None = None) -> None:
        self._pool = MessagePool()
        self._events: EventList = EventList(pool=self._pool)
        if working_time is None:
            start = time.monotonic()

            def working_time() -> float:
                return time.monotonic() - start

        self.working_time: Callable[[], float] = working_time

    @property
    def events(self) -> EventList:
        """The events so far: a list for ``EvalSample.events``, with the messages that are ready to be written."""
        return self._events

    def event(self, event: Event) -> None:
        """Stamp ``event`` (fields already set are left alone) and append it.

        The messages of a model event are recorded as they are now: later changes to them do not alter the past. What an
        event lacks yet (a model's output, a tool's result) is filled in place by whoever recorded it.
        """
        # Written to __dict__: pydantic's attribute setter costs more than all the rest of this function.
        known = event.__dict__
        if known.get("uuid") is None:
            known["uuid"] = quick_id()
        if known.get("span_id") is None:
            known["span_id"] = _span.get()
        if known.get("timestamp") is None:
            known["timestamp"] = now_iso()
        if known.get("working_start") is None:
            known["working_start"] = self.working_time()
        if isinstance(event, ModelEvent) and event.input:
            self._pool.record(event)
        self._events.append(event)

    def info(self, data: Any, *, source: str | None = None) -> None:
        """Record ``data`` (anything with a JSON form, kept as it is now); ``source`` says who recorded it."""
        kept = data if isinstance(data, (str, int, float, bool)) else decode(encode(data))
        self.event(InfoEvent(data=kept, source=source))

    def log_record(self, record: logging.LogRecord) -> None:
        """Record a message that went through Python's logging."""
        message = LoggingMessage(
            name=record.name,
            level=record.levelname.lower(),
            message=redact_text(record.getMessage()),
            created=record.created * 1000,
            filename=record.filename,
            module=record.module,
            lineno=record.lineno,
        )
        self.event(LoggerEvent(message=message))


_current: ContextVar[Transcript | None] = ContextVar("proctor_transcript", default=None)


def transcript() -> Transcript:
    """The transcript of the running sample; outside a sample, one whose events go nowhere."""
    return _current.get() or Transcript()


def begin_transcript(value: Transcript) -> None:
    """Make ``value`` what ``transcript()`` returns in this context from here on, with no span open.

    The engine does so: it runs each sample in a context of its own.
    """
    _current.set(value)
    _span.set(None)


@contextmanager
def use_transcript(value: Transcript) -> Iterator[Transcript]:
    """Make ``value`` what ``transcript()`` returns inside the block, with no span open."""
    token = _current.set(value)
    outer = _span.set(None)
    try:
        yield value
    finally:
        _span.reset(outer)
        _current.reset(token)


def span_id() -> str | None:
    """The id of the innermost open span."""
    return _span.get()


class Span:
    """An open span; ``id`` is what events inside it carry as ``span_id``."""

    __slots__ = ("_parent", "_store", "_transcript", "id", "name", "type")

    def __init__(self, name: str, type: str | None = None) -> None:
        self.name = name
        self.type = type
        self.id = quick_id()

    def __enter__(self) -> Span:
        self._transcript = record = _current.get() or Transcript()
        self._parent = parent = _span.get()
        id = self.id
        _span.set(id)
        self._store = folded_store()
        event = assembled(
            SpanBeginEvent,
            {
                "uuid": id,  # serves as both: a sample has many spans
                "span_id": id,
                "timestamp": now_iso(),
                "working_start": record.working_time(),
                "metadata": None,
                "pending": None,
                "event": "span_begin",
                "id": id,
                "parent_id": parent,
                "type": self.type,
                "name": self.name,
            },
        )
        record._events.append(event)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        record, id = self._transcript, self.id
        after = folded_store()
        if after is not self._store:
            changes = json_changes(self._store, after)
            if changes:
                record.event(StoreEvent(changes=changes, span_id=id))
        event = assembled(
            SpanEndEvent,
            {
                "uuid": quick_id(),
                "span_id": id,
                "timestamp": now_iso(),
                "working_start": record.working_time(),
                "metadata": None,
                "pending": None,
                "event": "span_end",
                "id": id,
            },
        )
        record._events.append(event)
        # Set, not reset by token: a generator that holds a span may be closed in another context than it was begun in.
        _span.set(self._parent)

    async def __aenter__(self) -> Span:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)


def span(name: str, *, type: str | None = None) -> Span:
    """Group the events inside the block (``with`` or ``async with``); what it changed in the store is recorded, too."""
    return Span(name, type)
