"""What a sample does at this moment: the operations that are under way in it, all of its branches together.

It is written on every sample and call, and read (from a thread) only when somebody asks why nothing moves. So an
operation is an object that stands in a dict while it lasts, and words are made of it when they are wanted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

__all__ = ["Activity", "Operation", "OperationKind", "Running", "activity", "begin_activity", "doing", "settled"]

_T = TypeVar("_T")

OperationKind: TypeAlias = Literal["gate", "pace", "model", "retry", "tool", "sandbox", "subprocess", "log", "code"]


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that is under way, in words.

    Attributes:
        kind: ``gate`` (waits for a place), ``pace`` (waits until a quota allows the next request), ``model`` (a request
            is out), ``retry`` (waits until it is sent again), ``tool``, ``sandbox``, ``subprocess``, ``log`` (finished,
            and many wait for the log before it), ``code`` (none of these: code of the task's own).
        what: the gate, model, tool or command.
        seconds: for how long.
        attempt: which attempt of a request it is, or 0.
        left: seconds until it ends by itself, where that is known.
        error: what the latest failed attempt said.
    """

    kind: OperationKind
    what: str
    seconds: float
    attempt: int = 0
    left: float | None = None
    error: str = ""


class Running(Protocol):
    """An operation while it lasts."""

    def operation(self) -> Operation | None:
        """What it is now; called on another thread, so it only reads."""
        ...


class Activity:
    """What one sample does.

    Attributes:
        id: of the sample.
        epoch: of the sample.
        started: ``time.monotonic()`` at its start.
        attempt: how often it was begun (``retry_on_error``).
        running: its operations, in the order in which they began.
        events: its transcript so far.
        coroutine: what runs it.
    """

    __slots__ = ("attempt", "coroutine", "epoch", "events", "id", "running", "started")

    def __init__(self, id: int | str, epoch: int) -> None:
        self.id = id
        self.epoch = epoch
        self.started = time.monotonic()
        self.attempt = 1
        self.running: dict[Running, None] = {}
        self.events: Sequence[Any] = ()
        self.coroutine: object = None

    def operations(self) -> list[Operation]:
        """What it does now, the longest first; empty when it runs code of its own."""
        found = (one.operation() for one in settled(self.running))
        return sorted((each for each in found if each is not None), key=lambda each: -each.seconds)


_current: ContextVar[Activity | None] = ContextVar("proctor_activity", default=None)


def activity() -> Activity | None:
    """What is known of the sample that runs here; None outside of any."""
    return _current.get()


def begin_activity(value: Activity) -> None:
    """Make ``value`` that of this context from here on (the engine runs each sample in a context of its own)."""
    _current.set(value)


class doing:
    """Say, while the code inside runs, what the sample does.

    Args:
        kind: as in ``Operation``.
        what: the gate, model, tool or command.
    """

    __slots__ = ("_in", "_kind", "_since", "_what")

    def __init__(self, kind: OperationKind, what: str) -> None:
        self._kind = kind
        self._what = what

    def __enter__(self) -> None:
        self._in = into = _current.get()
        if into is not None:
            self._since = time.monotonic()
            into.running[self] = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._in is not None:
            del self._in.running[self]

    def operation(self) -> Operation:
        """What it is now."""
        return Operation(self._kind, self._what, time.monotonic() - self._since)


def settled(values: Iterable[_T]) -> list[_T]:
    """A copy of what another thread changes meanwhile; ``values`` is a dict or a view of one."""
    while True:
        try:
            return list(values)
        except RuntimeError:  # it changed its size just now
            continue
