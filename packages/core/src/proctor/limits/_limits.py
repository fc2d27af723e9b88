"""The limits of a sample, which are the outermost of those that hold in it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import NamedTuple

import anyio

from proctor.limits._budget import run_budget
from proctor.limits._errors import LimitExceededError
from proctor.limits._scope import Limit, begin_scopes, scopes
from proctor.limits._work_clock import WorkClock
from proctor.schema import ModelUsage

__all__ = ["LimitUse", "SampleLimits", "begin_limits", "sample_limits", "use_limits"]


class LimitUse(NamedTuple):
    """A limit (None: there is none) and what was used of it."""

    limit: float | None
    usage: float

    @property
    def remaining(self) -> float | None:
        """What is left, never less than 0; None without a limit."""
        return None if self.limit is None else max(0, self.limit - self.usage)


class _WorkingScope:
    """A cancel scope that is cancelled when the working clock of a sample comes to ``end``."""

    __slots__ = ("_limits", "end", "scope")

    def __init__(self, limits: SampleLimits, end: float) -> None:
        self._limits = limits
        self.scope = anyio.CancelScope()
        self.end = end

    def extend(self, end: float) -> None:
        """Set another end."""
        self.end = end
        self._limits.rearm()

    def __enter__(self) -> anyio.CancelScope:
        self._limits.armed.append(self)
        self._limits.rearm()
        return self.scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._limits.armed.remove(self)
        return self.scope.__exit__(kind, error, traceback)


class SampleLimits:
    """The limits of one sample and what it has used. Times are in seconds, costs in dollars."""

    __slots__ = (
        "_budget",
        "_lifted",
        "_time",
        "armed",
        "cost_limit",
        "dollars",
        "message_limit",
        "messages",
        "model_usage",
        "role_usage",
        "time_limit",
        "token_limit",
        "tokens",
        "turn_limit",
        "turns",
        "working_limit",
        "working_time",
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
        self.dollars = 0.0
        self.turns = 0
        self.messages = 0
        self.armed: list[_WorkingScope] = []
        self._budget = run_budget()
        self._lifted = False
        self._time = WorkClock(clock)
        # Asked for with every event of a sample: the clock's own method, not one around it.
        self.working_time: Callable[[], float] = self._time.working_time
        """Seconds since the start, less those spent waiting for gates and retries (see ``WorkClock``); never falls."""

    @property
    def token(self) -> LimitUse:
        """Tokens."""
        return LimitUse(self.token_limit, self.tokens)

    @property
    def cost(self) -> LimitUse:
        """Dollars, as far as prices are known."""
        return LimitUse(self.cost_limit, self.dollars)

    @property
    def message(self) -> LimitUse:
        """Messages that the conversation had when a model was asked last."""
        return LimitUse(self.message_limit, self.messages)

    @property
    def turn(self) -> LimitUse:
        """Calls of models."""
        return LimitUse(self.turn_limit, self.turns)

    @property
    def time(self) -> LimitUse:
        """Seconds by the clock."""
        return LimitUse(self.time_limit, self.elapsed())

    @property
    def working(self) -> LimitUse:
        """Seconds without waits."""
        return LimitUse(self.working_limit, self.working_time())

    def record_usage(self, model: str, role: str | None, usage: ModelUsage) -> None:
        """Add what a call used, here and in every scope around the caller.

        Raises:
            LimitExceededError: when that went over a token or cost limit: the outermost of those that it went over.
        """
        known = self.model_usage.get(model)
        self.model_usage[model] = usage if known is None else known + usage
        if role is not None:
            known = self.role_usage.get(role)
            self.role_usage[role] = usage if known is None else known + usage
        self.tokens += usage.total_tokens
        self.dollars += usage.total_cost or 0.0
        if self._budget is not None:
            self._budget.add(usage)
        inner = scopes()
        for scope in inner:
            scope.add(usage)
        if self.token_limit is not None and self.tokens > self.token_limit:
            raise LimitExceededError("token", value=self.tokens, limit=self.token_limit)
        if self.cost_limit is not None and self.dollars > self.cost_limit:
            raise LimitExceededError("cost", value=self.dollars, limit=self.cost_limit)
        for scope in inner:
            scope.check(reached=False)

    def begin_turn(self, messages: int) -> None:
        """Count a turn of a model that is asked with a conversation of so many messages.

        Raises:
            LimitExceededError: when there is nothing left for it: it must not be sent.
        """
        if self.token_limit is not None and self.tokens >= self.token_limit:
            raise LimitExceededError("token", value=self.tokens, limit=self.token_limit, reached=True)
        if self.cost_limit is not None and self.dollars >= self.cost_limit:
            raise LimitExceededError("cost", value=self.dollars, limit=self.cost_limit, reached=True)
        if self.turn_limit is not None and self.turns >= self.turn_limit:
            raise LimitExceededError("turn", value=self.turns, limit=self.turn_limit, reached=True)
        inner = scopes()
        for scope in inner:
            scope.check(reached=True)
        self.check_messages(messages)
        if not self._lifted:  # what judges a sample takes no turn in it
            self.turns += 1
            self.messages = messages
        for scope in inner:
            scope.turn()

    def check_messages(self, count: int, *, growing: bool = False) -> None:
        """Refuse a conversation of ``count`` messages, by the innermost message limit: who opens one has his own.

        Args:
            count: messages.
            growing: they are the new length, which may be as much as the limit; else one more must have room.

        Raises:
            LimitExceededError: when it is too long.
        """
        scope: Limit | None = None
        limit: float | None = self.message_limit
        for each in reversed(scopes()):
            if each.type == "message" and each.limit is not None:
                scope, limit = each, each.limit
                break
        if limit is not None and (count > limit or (count == limit and not growing)):
            raise LimitExceededError("message", value=count, limit=limit, source=scope)

    @property
    def cost_limited(self) -> bool:
        """Whether what a call costs has to be known here."""
        if self.cost_limit is not None or (self._budget is not None and self._budget.max_cost is not None):
            return True
        inner = scopes()
        return bool(inner) and any(scope.type == "cost" and scope.limit is not None for scope in inner)

    def lift(self) -> None:
        """Let everything pass from now on; usage is still counted, but no turns."""
        self.message_limit = self.token_limit = self.turn_limit = None
        self.cost_limit = None
        self._lifted = True

    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._time.elapsed()

    def worked(self) -> float:
        """Working seconds as far as they are known now; less than before when a request turned out to be a wait."""
        return self._time.worked()

    @property
    def waiting(self) -> float:
        """Seconds spent waiting so far; waits that overlap count once."""
        return self._time.waited()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Wait inside: the working clock stands still, unless another branch of the sample works meanwhile."""
        self._time.pause()
        self.rearm()
        try:
            yield
        finally:
            self._time.resume()
            self.rearm()

    def request_sent(self) -> int:
        """Note that a request to a model goes out; the number is for ``request_ended``."""
        request = self._time.sent()
        self.rearm()
        return request

    def request_ended(self, request: int, *, failed: bool = False) -> None:
        """Note how a request ended: one that failed (and is sent again, if it may be) was a wait for the provider."""
        (self._time.failed if failed else self._time.answered)(request)
        self.rearm()

    def working_scope(self, seconds: float) -> _WorkingScope:
        """A cancel scope that is cancelled after so many seconds of working time."""
        return _WorkingScope(self, self._time.worked() + seconds)

    def rearm(self) -> None:
        """Set the deadlines anew, after something that may have stopped or started the working clock."""
        if self.armed:
            waiting, worked = self._time.waiting, self._time.worked()
            for each in self.armed:
                left = math.inf if waiting else max(0.0, each.end - worked)
                each.scope.deadline = anyio.current_time() + left

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
        unlimited = math.inf if self.working_limit is None else self.working_limit
        with anyio.move_on_after(self.time_limit) as timed, self.working_scope(unlimited) as working:
            yield
        if timed.cancelled_caught:
            raise self.out_of("time")
        if working.cancelled_caught:
            raise self.out_of("working")

    def overtime(self) -> tuple[str, float]:
        """Which of the time limits is out for the longest, and for how many seconds; negative: that are left."""
        found = []
        if self.time_limit is not None:
            found.append(("time", self.elapsed() - self.time_limit))
        if self.working_limit is not None:
            found.append(("working", self.worked() - self.working_limit))
        return max(found, key=lambda each: each[1], default=("time", -math.inf))

    def out_of(self, type: str) -> LimitExceededError:
        """The error that says that the time or working limit ran out."""
        use = self.time if type == "time" else self.working
        assert use.limit is not None
        return LimitExceededError(type, value=use.usage, limit=use.limit)


_current: ContextVar[SampleLimits | None] = ContextVar("proctor_sample_limits", default=None)


def sample_limits() -> SampleLimits | None:
    """The limits of the sample that is running here, with what it has used of them."""
    return _current.get()


def begin_limits(limits: SampleLimits) -> None:
    """Make ``limits`` those of this context from here on (the engine runs each sample in a context of its own)."""
    _current.set(limits)
    begin_scopes()


@contextmanager
def use_limits(limits: SampleLimits) -> Iterator[SampleLimits]:
    """Make ``limits`` those of the code inside."""
    token = _current.set(limits)
    try:
        yield limits
    finally:
        _current.reset(token)
