"""Spends a quota evenly: one that the user set, and one that the provider tells of in the headers of its answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from proctor.contracts import RateLimits

__all__ = ["PacerState", "RequestPacer", "Reserve", "Turn"]

Turn: TypeAlias = tuple[float, float, float]
"""When a booked request may leave: its positions in the two quotas, and not before this time."""

LONGEST_WAIT = 60.0  # seconds between two requests, whatever a header says: a wrong one must not stop a run
LONGEST_RESET = 600.0  # seconds; what takes longer (a day's quota) can't be spent evenly by one run

_SHORTEST = 1e-9  # seconds a unit: less is as good as nothing, and can't be divided by
_BURST = 1.0  # seconds of a told quota that may be spent ahead; the provider's own bucket evens that out
_MOVED = 1.5  # seconds by which a reset must move away to be that of a bucket; some are told in whole seconds
_RESERVE = 0.1  # of a bucket is left in it, so that requests on their way find something
_SPEND = 10.0  # seconds in which what is above the reserve is spent
_SMOOTHING = 0.125  # weight of a new request in the average cost


class Reserve(Protocol):
    """A budget that processes share."""

    def reserve(self, at: int, now: float, cost: float, burst: float) -> float:
        """Book ``cost`` seconds of budget ``at`` (0 requests, 1 tokens); returns the seconds to wait."""
        ...


@dataclass(frozen=True, slots=True)
class PacerState:
    """What a pacer knows, for a screen: the pace that the provider's quota allows, and what it told last.

    Attributes:
        requests: requests a minute, or None when its quota does not hold them back.
        tokens: tokens a minute, likewise.
        told: what the latest answer said.
    """

    requests: float | None
    tokens: float | None
    told: RateLimits | None


class _Quota:
    """One number that runs out. Requests have positions in units, and a line moves over the positions at a pace.

    The pace follows each answer, so nobody waits at one that was told long ago. Providers have two kinds of quota and
    do not say which: windows that end at a fixed time, and buckets that fill all the time, whose "reset" is when they
    will be full. The reset of a bucket moves away while requests are sent, that of a window does not.
    """

    __slots__ = ("_anchor", "_booked", "_bucket", "_interval", "_line", "_set", "_until")

    def __init__(self) -> None:
        self._booked = 0.0  # the position after the last booked unit
        self._line = 0.0  # up to here everything may leave, at the time
        self._set = 0.0
        self._interval = 1.0  # seconds per unit
        self._until = -math.inf  # without news nothing waits any longer
        self._anchor = -math.inf  # the end of the first window that was told of and did not pass yet
        self._bucket = False

    def active(self, now: float) -> bool:
        """Whether it holds anything back."""
        return now < self._until

    def hear(self, now: float, limit: int | None, remaining: int | None, reset: float | None) -> None:
        """Set the pace by what an answer said; what makes no sense ends it."""
        if remaining is None or reset is None or remaining < 0 or not 0 < reset <= LONGEST_RESET:
            self._until = -math.inf
            return
        if now >= self._anchor:
            self._anchor = now + reset
        elif now + reset > self._anchor + _MOVED:
            self._bucket = True
        if limit is not None and remaining >= limit:
            self._until = -math.inf  # all of it is there
            return
        line = self._at(now)
        self._interval = min(max(self._pace(limit, remaining, reset), _SHORTEST), LONGEST_WAIT)
        # Who did not send for a while may send a second's worth at once; with nothing left, nobody may.
        ahead = -1.0 if remaining == 0 else _BURST / self._interval
        self._line, self._set, self._until = min(line, self._booked + ahead), now, now + reset

    def _pace(self, limit: int | None, remaining: int, reset: float) -> float:
        """Seconds per unit."""
        if limit is None or not self._bucket:
            return reset / max(remaining, 1)  # evenly until the end of the window
        rate = (limit - remaining) / reset
        spare = (remaining - _RESERVE * limit) / _SPEND
        return 1 / max(rate + spare, rate / 4)

    def pace(self, now: float) -> float | None:
        """Units a minute that leave at the present pace; None when nothing is held back."""
        return 60 / self._interval if now < self._until else None

    def _at(self, now: float) -> float:
        """Where the line is."""
        if now >= self._until:
            return math.inf
        return self._line + (now - self._set) / self._interval

    def book(self, now: float, units: float) -> float:
        """The position of a request that costs ``units``."""
        position = self._booked
        if now < self._until:
            self._line, self._set = min(self._at(now), position + _BURST / self._interval), now
        self._booked = position + units
        return position

    def charge(self, units: float) -> None:
        """So many units more than were booked (or fewer)."""
        self._line -= units

    def wait(self, now: float, position: float) -> float:
        """Seconds until the line is at ``position``: never past the reset."""
        ahead = position - self._at(now)
        return 0.0 if ahead <= 0 else min(ahead * self._interval, self._until - now)


class _Budget:
    """So many units a minute, evenly: no minute ever sees more than that and the cost of one request."""

    __slots__ = ("_at", "_even", "_pool", "_seconds")

    def __init__(self, per_minute: int, at: int, pool: Reserve | None) -> None:
        self._seconds = 60.0 / per_minute
        self._at = at
        self._pool = pool
        self._even = 0.0  # when all that was booked is paid for

    def book(self, now: float, units: float) -> float:
        """When ``units`` may be spent (negative ones are given back)."""
        cost = units * self._seconds
        if self._pool is not None:
            return now + self._pool.reserve(self._at, now, cost, 0.0)
        even = max(self._even, now)
        self._even = even + cost
        return even


class RequestPacer:
    """Says when the next request may leave so that a quota is spent evenly, instead of at once and then not at all.

    ::

        turn = pacer.book()
        while turn and (seconds := pacer.wait(turn)):
            await sleep(seconds)
        ...  # send; the answer's headers go to ``heard``, its usage, whatever became of it, to ``settle``

    Args:
        max_rpm: requests a minute, at most.
        max_tpm: tokens a minute, at most.
        pool: where the processes on one machine keep these two together.
        now: seconds of a clock that never goes back; the same for all processes that share a pool.
    """

    __slots__ = ("_average", "_budgets", "_now", "_open", "_open_tokens", "_pacing", "_quotas", "told")

    def __init__(
        self,
        *,
        max_rpm: int | None = None,
        max_tpm: int | None = None,
        pool: Reserve | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now = now
        self._quotas = (_Quota(), _Quota())
        self._budgets = (
            None if max_rpm is None else _Budget(max_rpm, 0, pool),
            None if max_tpm is None else _Budget(max_tpm, 1, pool),
        )
        self._pacing = self._budgets != (None, None)
        self._average: float | None = None
        self._open = 0  # requests that were booked and not settled,
        self._open_tokens = 0.0  # and what they were booked with
        self.told: RateLimits | None = None
        """What the provider said last."""

    @property
    def expected(self) -> int:
        """Tokens that a request used on average so far: what one is booked with when nobody knows better."""
        return round(self._average or 0)

    def heard(self, limits: RateLimits | None) -> None:
        """The provider told of its quota in an answer, a refusal too; None when it said nothing."""
        if limits is None:
            return
        self.told = limits
        now = self._now()
        requests, tokens = self._quotas
        requests.hear(now, limits.requests_limit, limits.requests_remaining, limits.requests_reset)
        tokens.hear(now, limits.tokens_limit, limits.tokens_remaining, limits.tokens_reset)
        self._pacing = self._budgets != (None, None) or requests.active(now) or tokens.active(now)

    def book(self, tokens: int | None = None) -> Turn | None:
        """Book a request; None when it may leave at once.

        Args:
            tokens: what it will cost; ``expected`` when not given.
        """
        if not self._pacing:
            return None
        now = self._now()
        cost = (self._average or 0.0) if tokens is None else tokens
        self._open += 1
        self._open_tokens += cost
        requests, spent = self._quotas
        rpm, tpm = self._budgets
        leave = now if rpm is None else rpm.book(now, 1)
        if tpm is not None:
            leave = max(leave, tpm.book(now, cost))
        turn = (requests.book(now, 1), spent.book(now, cost), leave)
        return turn if self.wait(turn) > 0 else None

    def wait(self, turn: Turn) -> float:
        """Seconds after which to ask again; 0 when the request may leave. Never more than a minute."""
        now = self._now()
        requests, tokens = self._quotas
        wait = max(turn[2] - now, requests.wait(now, turn[0]), tokens.wait(now, turn[1]))
        return min(max(wait, 0.0), LONGEST_WAIT)

    def settle(self, used: int | None) -> None:
        """Correct the tokens that a request was booked with by those that it used.

        Args:
            used: 0 when it was refused or never left; None when nobody knows.
        """
        if used:
            average = self._average
            self._average = used if average is None else average + (used - average) * _SMOOTHING
        if not self._pacing:
            self._open, self._open_tokens = 0, 0.0
            return
        # Which of the open requests it was does not matter: all that was booked is taken back, one share at a time.
        booked = 0.0
        if self._open:
            booked = self._open_tokens / self._open
            self._open -= 1
            self._open_tokens -= booked
        more = 0.0 if used is None else used - booked
        if more:
            self._quotas[1].charge(more)
            budget = self._budgets[1]
            if budget is not None:
                budget.book(self._now(), more)

    def state(self) -> PacerState:
        """What is known now, for a screen."""
        now = self._now()
        paces = [quota.pace(now) for quota in self._quotas]
        return PacerState(requests=paces[0], tokens=paces[1], told=self.told)
