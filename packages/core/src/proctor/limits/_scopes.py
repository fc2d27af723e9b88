"""The kinds of limits that hold for a ``with`` block, and how several hold together."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType

import anyio

from proctor.limits._errors import LimitExceededError, limit_in
from proctor.limits._limits import SampleLimits, sample_limits, use_limits
from proctor.limits._scope import Limit
from proctor.schema import ModelUsage

__all__ = [
    "LimitScope",
    "Permit",
    "apply_limits",
    "cost_limit",
    "message_limit",
    "time_limit",
    "token_limit",
    "turn_limit",
    "working_limit",
]


def token_limit(limit: int | None) -> Limit:
    """At most so many tokens of models: ``with token_limit(50_000): ...``."""
    return _TokenLimit(limit)


def cost_limit(limit: float | None) -> Limit:
    """At most so many dollars, by the prices of ``--model-cost-config``."""
    return _CostLimit(limit)


def turn_limit(limit: int | None) -> Limit:
    """At most so many calls of models."""
    return _TurnLimit(limit)


def message_limit(limit: int | None) -> Limit:
    """No conversation of more than so many messages.

    A conversation belongs to the innermost message limit around it: those further out hold for others. How long it is
    is known by whoever has the messages, so ``usage`` is 0.
    """
    return _MessageLimit(limit)


def time_limit(limit: float | None) -> Limit:
    """At most so many seconds by the clock; then the code inside is cancelled."""
    return _TimeLimit(limit)


def working_limit(limit: float | None) -> Limit:
    """At most so many seconds of work, waits for connections and retries left out; then the code is cancelled.

    The clock is that of the whole sample: while one of its branches works, it goes on for all.
    """
    return _WorkingLimit(limit)


class _Sampled(Limit):
    """A limit that makes the counts of a sample where there is none (in a script, a notebook)."""

    def __enter__(self) -> Limit:
        super().__enter__()
        self._own = ExitStack()
        if sample_limits() is None:
            self._own.enter_context(use_limits(SampleLimits()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._own.close()
        return super().__exit__(kind, error, traceback)


class _CountedLimit(_Sampled):
    def check(self, *, reached: bool) -> None:
        if self.active and self._limit is not None:
            if self._used > self._limit:
                raise self.exceeded()
            if reached and self._used == self._limit:
                raise self.exceeded(reached=True)


class _TokenLimit(_CountedLimit):
    type = "token"

    def add(self, usage: ModelUsage) -> None:
        self._used += usage.total_tokens


class _CostLimit(_CountedLimit):
    type = "cost"

    def add(self, usage: ModelUsage) -> None:
        self._used += usage.total_cost or 0.0


class _TurnLimit(_CountedLimit):
    type = "turn"

    def turn(self) -> None:
        self._used += 1


class _MessageLimit(_Sampled):
    type = "message"


class _TimedLimit(_Sampled, ABC):
    """In seconds: what runs inside is cancelled."""

    _start: float

    def __enter__(self) -> Limit:
        super().__enter__()
        self._timer = ExitStack()
        try:
            self._cancel = self._timer.enter_context(self._scope(math.inf if self._limit is None else self._limit))
        except BaseException:
            super().__exit__(None, None, None)
            raise
        return self

    @abstractmethod
    def _scope(self, seconds: float) -> AbstractContextManager[anyio.CancelScope]:
        """The cancel scope of the block, and the beginning of its time."""

    @abstractmethod
    def _seconds(self) -> float:
        """On the clock that counts."""

    @property
    def usage(self) -> float:
        return self._seconds() - self._start if self.active else self._used

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._used = self.usage
        swallowed = self._timer.__exit__(kind, error, traceback)
        super().__exit__(kind, None if swallowed else error, traceback)
        if self._cancel.cancelled_caught:
            raise self.exceeded()
        return swallowed


class _TimeLimit(_TimedLimit):
    type = "time"

    def _scope(self, seconds: float) -> AbstractContextManager[anyio.CancelScope]:
        self._start = anyio.current_time()
        return anyio.CancelScope(deadline=self._start + seconds)

    def _seconds(self) -> float:
        return anyio.current_time()

    def _limit_changed(self) -> None:
        if self.active:
            self._cancel.deadline = self._start + (math.inf if self._limit is None else self._limit)


class _WorkingLimit(_TimedLimit):
    type = "working"

    def _scope(self, seconds: float) -> AbstractContextManager[anyio.CancelScope]:
        limits = sample_limits()
        assert limits is not None
        self._clock = limits.worked
        self._start = self._clock()
        self._working = limits.working_scope(seconds)
        return self._working

    def _seconds(self) -> float:
        return self._clock()

    def _limit_changed(self) -> None:
        if self.active:
            self._working.extend(self._start + (math.inf if self._limit is None else self._limit))


class Permit(_Sampled):
    """Lets everything pass until it is revoked: tasks that outlive what they belong to ask no model any more."""

    type = "custom"

    def __init__(self) -> None:
        super().__init__(None)
        self._revoked = ""

    def revoke(self, why: str) -> None:
        """Let nothing pass from now on."""
        self._revoked = why

    def check(self, *, reached: bool) -> None:
        if self._revoked:
            raise LimitExceededError("custom", message=self._revoked, source=self)


class LimitScope:
    """What came of the code inside ``apply_limits``; ``limit_error`` is the limit that ended it, if one did."""

    def __init__(self) -> None:
        self.limit_error: LimitExceededError | None = None


@contextmanager
def apply_limits(limits: Sequence[Limit], catch_errors: bool = False) -> Iterator[LimitScope]:
    """Hold several limits over the code inside.

    Args:
        limits: from the outermost to the innermost.
        catch_errors: end the block quietly when one of these limits runs out; ``limit_error`` of the scope says which.
            Limits further out are raised all the same.

    Raises:
        LimitExceededError: when one of them runs out, unless it is caught.
    """
    scope = LimitScope()
    try:
        with ExitStack() as stack:
            for limit in limits:
                stack.enter_context(limit)
            yield scope
    except (LimitExceededError, BaseExceptionGroup) as error:
        found = limit_in(error)
        if not catch_errors or found is None or all(found.source is not limit for limit in limits):
            raise
        scope.limit_error = found
