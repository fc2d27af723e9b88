"""What holds back the requests on one connection key: a gate, what moves its limit, and the pace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from proctor.concurrency._adaptive import AdaptiveController, AdaptiveLimits, LimitChange, Token
from proctor.concurrency._gate import Gate
from proctor.concurrency._pacing import RequestPacer, Turn
from proctor.concurrency._share import Row, SharedGate, SharedPool, check_share_name, shared_pool
from proctor.contracts import DEFAULT_CONNECTIONS, RateLimits, Retry
from proctor.schema import ModelUsage

__all__ = ["ConnectionPolicy", "Connections", "LimitRecord", "Wish"]

Adaptive: TypeAlias = bool | int | Mapping[str, int] | None
_Reason: TypeAlias = Literal["slow_start", "steady_state_up", "rate_limit", "manual"]


@dataclass(frozen=True, slots=True)
class ConnectionPolicy:
    """What a run says of all its connections; ``None`` where it says nothing.

    Attributes:
        max_connections: requests in flight at once on each key.
        adaptive: whether a limit follows the provider's answers, and between which bounds (``AdaptiveLimits.of``).
        max_rpm: requests a minute on each key.
        max_tpm: tokens a minute on each key.
        share: the name under which processes on this machine share all of these.
    """

    max_connections: int | None = None
    adaptive: Adaptive = None
    max_rpm: int | None = None
    max_tpm: int | None = None
    share: str | None = None

    def __post_init__(self) -> None:
        if self.share is not None:
            check_share_name(self.share)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a model says of its connections: its own settings, and what holds for its provider when nobody says any.

    Attributes:
        max_connections: set for this model.
        adaptive: set for this model.
        default: the provider's static number.
        adapts: whether the provider's limit may follow its answers.
    """

    max_connections: int | None = None
    adaptive: Adaptive = None
    default: int = DEFAULT_CONNECTIONS
    adapts: bool = True

    def resolve(self, policy: ConnectionPolicy) -> int | AdaptiveLimits:
        """A number, or the bounds of one that moves. A number that somebody set turns adapting off."""
        number = policy.max_connections if self.max_connections is None else self.max_connections
        if number is not None:
            return number
        adaptive = AdaptiveLimits.of(policy.adaptive if self.adaptive is None else self.adaptive)
        return self.default if adaptive is None or not self.adapts else adaptive


@dataclass(frozen=True, slots=True)
class LimitRecord:
    """A change of a connection limit: when (seconds since the epoch), from what to what, and why."""

    timestamp: float
    old: int
    new: int
    reason: _Reason


class Connections:
    """All connections on one key.

    Args:
        label: what a screen calls it.
        limit: a number, or the bounds of one that follows the provider's answers.
        policy: budgets, and whether other processes share all this.
        key: hash of provider, credential and address.
    """

    __slots__ = (
        "_bounds",
        "_generation",
        "_listeners",
        "_pool",
        "backing_off",
        "by_hand",
        "controller",
        "gate",
        "history",
        "key",
        "paced",
        "pacer",
    )

    def __init__(self, key: str, label: str, limit: int | AdaptiveLimits, policy: ConnectionPolicy) -> None:
        self.key = key
        self.controller: AdaptiveController | None = None
        self.history: list[LimitRecord] = []
        """All changes; the slots that one round opens are one, and so are the cuts of one episode."""
        self.by_hand = False
        """Whether somebody changed the limit while the run was on: it holds, whatever a task says of itself."""
        self.backing_off = 0
        """Requests that wait for a retry after a refusal: they hold no connection."""
        self.paced = 0
        """Requests that wait for the pace: they hold no connection either."""
        self._listeners: list[Callable[[], None]] = []
        self._pool: SharedPool | None = None if policy.share is None else shared_pool(policy.share, key)
        self._generation = -1
        self._bounds = limit if isinstance(limit, AdaptiveLimits) else None
        if isinstance(limit, AdaptiveLimits):
            self.controller = AdaptiveController(limit, on_change=self._changed)
            number = self.controller.limit
        else:
            number = limit
        if self._pool is None:
            self.gate = Gate(label, number)
        else:
            self.gate = SharedGate(label, number, self._pool, static=self.controller is None)
        self.pacer = RequestPacer(max_rpm=policy.max_rpm, max_tpm=policy.max_tpm, pool=self._pool)

    @property
    def adaptive(self) -> bool:
        """Whether the limit follows the provider's answers."""
        return self.controller is not None

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` when there may be room for more samples; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def samples(self) -> int:
        """How many samples keep these connections busy: one each, and one in place of each that was sent away."""
        limit = self.gate.limit or 1
        return limit + min(self.backing_off, limit)

    def book(self) -> Turn | None:
        """Book a request in the budgets and the provider's quota; None when it may leave at once.

        What was booked must be followed by ``sent``, or by ``dropped`` when it never leaves.
        """
        return self.pacer.book()

    def wait(self, turn: Turn | None) -> float:
        """Seconds after which to ask again whether a request may leave; 0 when it may."""
        hold = 0.0 if self.controller is None else self.controller.hold()
        return hold if turn is None else max(hold, self.pacer.wait(turn))

    def sent(self) -> Token | None:
        """A request leaves."""
        if self.controller is None:
            return None
        pool = self._pool
        if pool is None:
            return self.controller.sent()
        if pool.generation != self._generation:
            self._adopt(pool)
        return self.controller.sent(pool.level)

    def answered(self, token: Token | None, usage: ModelUsage | None, *, first: bool) -> None:
        """It was answered, at the first attempt or not; call it before its place in the gate is given back.

        Args:
            token: what ``sent`` returned.
            usage: what it cost, when the provider said.
            first: whether no attempt before it failed.
        """
        self.pacer.settle(None if usage is None else usage.total_tokens)
        if self.controller is not None and token is not None:
            if first:
                self.controller.succeeded(token)
            else:
                self.controller.repeated(token)

    def failed(self, token: Token | None, retry: Retry) -> None:
        """It failed; call it before its place in the gate is given back."""
        self.pacer.settle(0)
        if self.controller is None or token is None:
            return
        if retry.kind == "rate_limit":
            self.controller.refused(token, retry.after)
        elif retry.kind == "transient":
            self.controller.troubled(token)
        else:
            self.controller.neutral(token)

    def dropped(self, token: Token | None) -> None:
        """It was cancelled; call it before its place in the gate is given back."""
        self.pacer.settle(0)
        if self.controller is not None and token is not None:
            self.controller.neutral(token)

    def tend(self) -> bool:
        """Open slots that fell due and let in who waits for what other processes gave back.

        Returns:
            Whether to look again soon: nobody tells of either.
        """
        controller, pool = self.controller, self._pool
        soon = False
        if controller is not None:
            controller.tend()
            soon = controller.due() is not None and controller.limit < controller.limits.max
        if isinstance(self.gate, SharedGate) and pool is not None and self.gate.waiting:
            if controller is not None and pool.generation != self._generation:
                self._adopt(pool)
            self.gate.poll()
            soon = True
        return soon

    @contextmanager
    def away(self, retry: Retry) -> Iterator[None]:
        """A request waits for its next attempt."""
        if retry.kind != "rate_limit":
            yield
            return
        self.backing_off += 1
        self._tell()
        try:
            yield
        finally:
            self.backing_off -= 1

    @contextmanager
    def slowed(self) -> Iterator[None]:
        """A request waits for the pace."""
        self.paced += 1
        try:
            yield
        finally:
            self.paced -= 1

    def heard(self, limits: RateLimits | None) -> None:
        """The provider told of its quota, or did not."""
        self.pacer.heard(limits)

    def shared(self) -> list[Row] | None:
        """What the processes that share these connections say of themselves; None when nobody does."""
        return None if self._pool is None else self._pool.rows()

    def set_limit(self, limit: int) -> None:
        """Change the limit by hand: it stays there, also where it followed the provider so far."""
        self.controller = None
        self.by_hand = True
        if isinstance(self.gate, SharedGate):
            self.gate.static = True
        self._note(self.gate.limit or limit, limit, "manual")

    def follow(self) -> bool:
        """Let the limit follow the provider's answers again, from where it is; False where it never did."""
        bounds = self._bounds
        if bounds is None:
            return False
        self.by_hand = False
        if self.controller is None:
            start = max(bounds.min, min(self.gate.limit or bounds.start, bounds.max))
            self.controller = AdaptiveController(AdaptiveLimits(bounds.min, start, bounds.max), on_change=self._changed)
            if isinstance(self.gate, SharedGate):
                self.gate.static = False
            if start != self.gate.limit:
                self._note(self.gate.limit or start, start, "manual")
        return True

    def close(self) -> None:
        """The run is over: other processes are not bound by its limit any more."""
        if self._pool is not None:
            self._pool.rest()

    def _adopt(self, pool: SharedPool) -> None:
        """Take over the limit that another process found."""
        assert self.controller is not None
        self._generation = pool.generation
        limit = pool.adaptive
        if limit and limit != self.controller.limit:
            old = self.controller.limit
            self.controller.adopt(limit)  # tells nobody: it would come back here
            self._note(old, self.controller.limit, "rate_limit" if limit < old else "steady_state_up")

    def _changed(self, change: LimitChange) -> None:
        """The controller moved its limit."""
        if self._pool is not None:
            self._generation = self._pool.publish(change.new)
        self._note(change.old, change.new, change.reason, more=change.more)

    def _note(self, old: int, new: int, reason: _Reason, *, more: bool = False) -> None:
        if more and self.history:
            last = self.history[-1]
            self.history[-1] = LimitRecord(last.timestamp, last.old, new, reason)
        else:
            self.history.append(LimitRecord(time.time(), old, new, reason))
        self.gate.limit = new
        if new > old:
            self._tell()

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()
