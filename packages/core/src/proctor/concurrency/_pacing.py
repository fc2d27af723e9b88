"""Spends a quota evenly: one that the user set, and one that the provider tells of in the headers of its answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from proctor.contracts import RateLimits

__all__ = ["PacerState", "Reserve", "RequestPacer"]

LONGEST_WAIT = 60.0
"""Seconds: what waits longer for a quota asks again, so a header that is wrong can't stop a run."""

_BURST = 1.0  # seconds of a told quota that may be spent ahead; the provider's own bucket evens that out
_SMOOTHING = 0.125  # weight of a new request in the average cost
_MINUTE = 60.0


class Reserve(Protocol):
    """A budget that processes share."""

    def reserve(self, at: int, now: float, cost: float, burst: float) -> float:
        """Book ``cost`` seconds of budget ``at`` (0 requests, 1 tokens); returns the seconds to wait."""
        ...


@dataclass(frozen=True, slots=True)
class PacerState:
    """What a pacer knows, for a screen: seconds that the next request would wait, and what the provider told last."""

    wait: float
    told: RateLimits | None


class _Quota:
    """One number that runs out: seconds per unit, until when that holds, and when the booked units are paid for.

    The generic cell rate algorithm (ITU-T I.371) with a rate that each answer may change.
    """

    __slots__ = ("even", "interval", "until")

    def __init__(self) -> None:
        self.even = 0.0
        self.interval = 0.0
        self.until = -math.inf

    def hear(self, now: float, limit: int | None, remaining: int | None, reset: float | None) -> None:
        """Set the pace so that ``remaining`` lasts for ``reset`` seconds; what makes no sense clears it.

        A bucket that fills all the time settles at half full this way, where the pace is just its rate.
        """
        if remaining is None or reset is None or remaining < 0 or not 0 < reset < math.inf:
            self.until = -math.inf
            return
        if limit is not None and remaining >= limit:
            self.until = -math.inf  # full
            return
        interval = reset / max(remaining, 1)
        if now < self.until and self.interval > 0 and self.even > now:
            self.even = now + (self.even - now) / self.interval * interval  # the booked units, at the new pace
        else:
            self.even = now
        if remaining == 0:
            self.even = max(self.even, now + reset + _BURST)
        self.interval = interval
        self.until = now + reset

    def wait(self, now: float) -> float:
        """Seconds until another unit may be spent: never past the reset."""
        if now >= self.until:
            return 0.0
        return max(0.0, min(self.even - now - _BURST, self.until - now, LONGEST_WAIT))

    def spend(self, now: float, units: float) -> None:
        """Book ``units``; negative ones are given back."""
        if now < self.until:
            self.even = max(self.even, now) + units * self.interval


class _Budget:
    """So many units a minute, evenly: no minute ever sees more than that and the cost of one request."""

    __slots__ = ("_at", "_even", "_pool", "_seconds")

    def __init__(self, per_minute: int, at: int, pool: Reserve | None) -> None:
        self._seconds = _MINUTE / per_minute
        self._at = at
        self._pool = pool
        self._even = 0.0

    def book(self, now: float, units: float) -> float:
        """Book ``units`` (negative: give back) and return the seconds to wait before they are spent."""
        cost = units * self._seconds
        if self._pool is not None:
            return self._pool.reserve(self._at, now, cost, 0.0)
        even = max(self._even, now)
        self._even = even + cost
        return even - now

    def wait(self, now: float) -> float:
        """Seconds that the next booking of this process would wait."""
        return max(0.0, self._even - now)


class RequestPacer:
    """Says when the next request may leave so that a quota is spent evenly, instead of at once and then not at all.

    Args:
        max_rpm: requests a minute, at most.
        max_tpm: tokens a minute, at most.
        pool: where the processes on one machine keep these two together.
        now: seconds of a clock that never goes back; the same for all processes that share a pool.
    """

    __slots__ = ("_average", "_budgets", "_idle", "_now", "_quotas", "told")

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
        self._idle = max_rpm is None and max_tpm is None
        self._average: float | None = None
        self.told: RateLimits | None = None
        """What the provider said last."""

    @property
    def expected(self) -> int:
        """Tokens that a request used on average so far: what ``delay`` may be asked with."""
        return round(self._average or 0)

    def heard(self, limits: RateLimits | None) -> None:
        """The provider told of its quota in an answer; None when it said nothing."""
        if limits is None:
            return
        self.told = limits
        now = self._now()
        requests, tokens = self._quotas
        requests.hear(now, limits.requests_limit, limits.requests_remaining, limits.requests_reset)
        tokens.hear(now, limits.tokens_limit, limits.tokens_remaining, limits.tokens_reset)
        self._idle = self._budgets == (None, None) and max(requests.until, tokens.until) < now

    def delay(self, tokens: int = 0) -> float:
        """Seconds until a request may leave; it is booked and must leave then.

        Args:
            tokens: what it will cost, as far as one knows (``expected``).
        """
        if self._idle:
            return 0.0
        now = self._now()
        units = (1, tokens)
        wait = 0.0
        for quota, amount in zip(self._quotas, units, strict=True):
            wait = max(wait, quota.wait(now))
            quota.spend(now, amount)
        for budget, amount in zip(self._budgets, units, strict=True):
            if budget is not None:
                wait = max(wait, budget.book(now, amount))
        return wait

    def settle(self, expected: int, used: int) -> None:
        """Correct the tokens that were booked by those that were used (0 when the request never left)."""
        if used:
            average = self._average
            self._average = used if average is None else average + (used - average) * _SMOOTHING
        if self._idle or used == expected:
            return
        now = self._now()
        self._quotas[1].spend(now, used - expected)
        budget = self._budgets[1]
        if budget is not None:
            budget.book(now, used - expected)

    def state(self) -> PacerState:
        """What is known now, for a screen."""
        now = self._now()
        waits = [quota.wait(now) for quota in self._quotas]
        waits += [budget.wait(now) for budget in self._budgets if budget is not None]
        return PacerState(max(waits), self.told)
