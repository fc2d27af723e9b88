from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import anyio

from proctor.limits._work_clock import WorkClock
from proctor.schema import ModelUsage

__all__ = ["LimitExceededError", "SampleLimits", "begin_limits", "sample_limits", "use_limits"]


class LimitExceededError(Exception):
    """A limit ended the sample, in an orderly way: it is scored with what it has.

    ``type`` is message, token, turn, time, working, cost, operator or custom; ``value`` what was used, ``limit`` what
    was allowed.
    """

    def __init__(self, type: str, *, value: float = 0, limit: float = 0, message: str | None = None) -> None:
        self.type = type
        self.value = value
        self.limit = limit
        self.message = message or f"{type} limit exceeded: {value:g} of {limit:g}"
        super().__init__(self.message)


class SampleLimits:
    """The limits of one sample and what it has used. Times are in seconds, costs in dollars."""

    __slots__ = (
        "_scope",
        "_time",
        "cost",
        "cost_limit",
        "message_limit",
        "model_usage",
        "role_usage",
        "time_limit",
        "token_limit",
        "tokens",
        "turn_limit",
        "turns",
        "working_limit",
    )

    def __init__(
        self,
        *,
        message_limit: int | None = None,
        token_limit: int | None = None,
        turn_limit: int | None = None,
        time_limit: float | None = None,
        working_limit: float | None = None,
        cost_limit: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.message_limit = message_limit
        self.token_limit = token_limit
        self.turn_limit = turn_limit
        self.time_limit = time_limit
        self.working_limit = working_limit
        self.cost_limit = cost_limit
        self.model_usage: dict[str, ModelUsage] = {}
        self.role_usage: dict[str, ModelUsage] = {}
        self.tokens = 0
        self.cost = 0.0
        self.turns = 0
        self._scope: anyio.CancelScope | None = None
        self._time = WorkClock(clock)

    def record_usage(self, model: str, role: str | None, usage: ModelUsage) -> None:
        """Add what a call used.

        Raises:
            LimitExceededError: when that went over the token or cost limit.
        """
        known = self.model_usage.get(model)
        self.model_usage[model] = usage if known is None else known + usage
        if role is not None:
            known = self.role_usage.get(role)
            self.role_usage[role] = usage if known is None else known + usage
        self.tokens += usage.total_tokens
        if self.token_limit is not None and self.tokens > self.token_limit:
            raise LimitExceededError("token", value=self.tokens, limit=self.token_limit)
        if usage.total_cost is not None:
            self.cost += usage.total_cost
            if self.cost_limit is not None and self.cost > self.cost_limit:
                raise LimitExceededError("cost", value=self.cost, limit=self.cost_limit)

    def check_messages(self, count: int) -> None:
        """Raise ``LimitExceededError`` if a conversation of ``count`` messages has no room for another."""
        if self.message_limit is not None and count >= self.message_limit:
            raise LimitExceededError("message", value=count, limit=self.message_limit)

    def turn(self) -> None:
        """Count a turn of the model; raise ``LimitExceededError`` if there was none left."""
        if self.turn_limit is not None and self.turns >= self.turn_limit:
            raise LimitExceededError("turn", value=self.turns, limit=self.turn_limit)
        self.turns += 1

    def lift(self) -> None:
        """Let everything pass from now on; usage is still counted."""
        self.message_limit = self.token_limit = self.turn_limit = None
        self.cost_limit = None

    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._time.elapsed()

    def working_time(self) -> float:
        """Seconds since the start, less those spent waiting for gates and retries (see ``WorkClock``); never falls."""
        return self._time.working_time()

    @property
    def waiting(self) -> float:
        """Seconds spent waiting so far; waits that overlap count once."""
        return self._time.waited()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Wait inside: the working clock stands still, unless another branch of the sample works meanwhile."""
        self._time.pause()
        self._rearm()
        try:
            yield
        finally:
            self._time.resume()
            self._rearm()

    def request_sent(self) -> int:
        """Note that a request to a model goes out; the number is for ``request_ended``."""
        request = self._time.sent()
        self._rearm()
        return request

    def request_ended(self, request: int, *, failed: bool = False) -> None:
        """Note how a request ended: one that failed (and is sent again, if it may be) was a wait for the provider."""
        (self._time.failed if failed else self._time.answered)(request)
        self._rearm()

    def _rearm(self) -> None:
        """Set the deadline anew, after something that may have stopped or started the working clock."""
        if self._scope is not None and self.working_limit is not None:
            left = self.working_limit - self._time.worked()
            self._scope.deadline = math.inf if self._time.waiting else anyio.current_time() + max(0.0, left)

    @property
    def timed(self) -> bool:
        """Whether there is a time or working limit to enforce."""
        return self.time_limit is not None or self.working_limit is not None

    @contextmanager
    def enforce(self) -> Iterator[None]:
        """Hold the time and working limits over the code inside.

        Raises:
            LimitExceededError: when one of them ran out; the code inside was cancelled.
        """
        with anyio.move_on_after(self.time_limit) as timed, anyio.move_on_after(self.working_limit) as working:
            self._scope = working
            try:
                yield
            finally:
                self._scope = None
        if timed.cancelled_caught and self.time_limit is not None:
            raise LimitExceededError("time", value=self.elapsed(), limit=self.time_limit)
        if working.cancelled_caught and self.working_limit is not None:
            raise LimitExceededError("working", value=self.working_time(), limit=self.working_limit)


_current: ContextVar[SampleLimits | None] = ContextVar("proctor_sample_limits", default=None)


def sample_limits() -> SampleLimits | None:
    """The limits of the sample that is running here."""
    return _current.get()


def begin_limits(limits: SampleLimits) -> None:
    """Make ``limits`` those of this context from here on (the engine runs each sample in a context of its own)."""
    _current.set(limits)


@contextmanager
def use_limits(limits: SampleLimits) -> Iterator[SampleLimits]:
    """Make ``limits`` those of the code inside."""
    token = _current.set(limits)
    try:
        yield limits
    finally:
        _current.reset(token)
