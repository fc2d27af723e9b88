"""Spends a quota evenly: one that the user set, and one that the provider tells of in the headers of its answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from proctor.contracts import RateLimits

__all__ = ["Budget", "PacerState", "RequestPacer", "Reserve", "Turn"]

LONGEST_WAIT = 60.0  # seconds between two requests, whatever a header says: a wrong one must not stop a run
LONGEST_RESET = 600.0  # seconds; what takes longer (a day's quota) can't be spent evenly by one run

_LEARNING = 0.05  # seconds between looks for the first answer, which tells what a request costs
_SHORTEST = 1e-9  # seconds a unit: less is as good as nothing, and can't be divided by
_BURST = 1.0  # seconds of a told quota that may be spent ahead; the provider's own bucket evens that out
_MOVED = 1.5  # seconds by which a reset must move away to be that of a bucket; some are told in whole seconds
_RESERVE = 0.1  # of a bucket is left in it, so that requests on their way find something
_SPEND = 10.0  # seconds in which what is above the reserve is spent
_SMOOTHING = 0.125  # weight of a new request in the average cost


class Reserve(Protocol):
    """Budgets that processes share: of requests and of tokens, both in seconds."""

    def pay(self, now: float, requests: float, tokens: float) -> float:
        """Take both costs and return 0, or take nothing and return the seconds after which to ask again."""
        ...

    def charge(self, now: float, tokens: float) -> None:
        """Take more tokens than were paid for (negative: give some back)."""
        ...


@dataclass(slots=True)
class Turn:
    """A request that waits: its positions in the provider's two quotas, and what the budgets will be charged.

    A ``cost`` of None is not known yet.
    """

    request: float
    token: float
    cost: float | None
    paid: bool = False


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


class Budget:
    """Requests and tokens, each so many seconds of a budget, spent evenly: what leaves is paid for as it leaves.

    The generic cell rate algorithm (ITU-T I.371): the time when a budget will be even again is all its state. Nothing
    is booked ahead, so who is killed or cancelled while it waits has taken nothing from anybody.
    """

    __slots__ = ("requests", "tokens")

    def __init__(self, requests: float = 0.0, tokens: float = 0.0) -> None:
        self.requests = requests
        self.tokens = tokens

    def pay(self, now: float, requests: float, tokens: float) -> float:
        """Take both costs and return 0, or take nothing and return the seconds after which to ask again.

        A cost of 0 waits for nothing.
        """
        wait = max(self.requests - now if requests else 0.0, self.tokens - now if tokens else 0.0)
        if wait > 0:
            return wait
        if requests:
            self.requests = max(self.requests, now) + requests
        if tokens:
            self.tokens = max(self.tokens, now) + tokens
        return 0.0

    def charge(self, now: float, tokens: float) -> None:
        """Take more tokens than were paid for (negative: give some back)."""
        self.tokens = (max(self.tokens, now) if tokens > 0 else self.tokens) + tokens


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

    __slots__ = (
        "_average",
        "_budget",
        "_leaving",
        "_limited",
        "_now",
        "_open",
        "_open_tokens",
        "_pacing",
        "_quotas",
        "_request",
        "_token",
        "told",
    )

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
        self._request = 60.0 / max_rpm if max_rpm else 0.0  # seconds of the budget that each costs
        self._token = 60.0 / max_tpm if max_tpm else 0.0
        self._budget: Reserve = pool or Budget()
        self._limited = self._pacing = max_rpm is not None or max_tpm is not None
        self._average: float | None = None
        self._leaving = 0  # requests that were paid for and not settled
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
        self._pacing = self._limited or requests.active(now) or tokens.active(now)

    def book(self, tokens: int | None = None) -> Turn | None:
        """Book a request; None when it may leave at once.

        Args:
            tokens: what it will cost; ``expected`` when not given.
        """
        if not self._pacing:
            return None
        now = self._now()
        cost = self._average if tokens is None else tokens
        self._open += 1
        self._open_tokens += cost or 0.0
        requests, spent = self._quotas
        turn = Turn(requests.book(now, 1), spent.book(now, cost or 0.0), cost)
        return turn if self.wait(turn) > 0 else None

    def wait(self, turn: Turn) -> float:
        """Seconds after which to ask again; 0 when the request may leave, and is paid for. Never more than a minute."""
        now = self._now()
        requests, tokens = self._quotas
        wait = max(requests.wait(now, turn.request), tokens.wait(now, turn.token))
        if wait <= 0 and self._limited and not turn.paid:
            wait = self._pay(now, turn)
        return min(max(wait, 0.0), LONGEST_WAIT)

    def _pay(self, now: float, turn: Turn) -> float:
        if turn.cost is None and self._average is not None:
            turn.cost = self._average
            self._open_tokens += turn.cost
        if turn.cost is None and self._token and self._leaving:
            return _LEARNING  # nobody knows yet what a request costs: the first that is answered tells
        wait = self._budget.pay(now, self._request, (turn.cost or 0.0) * self._token)
        if wait <= 0:
            turn.paid = True
            self._leaving += 1
        return wait

    def settle(self, used: int | None) -> None:
        """Correct the tokens that a request was booked with by those that it used.

        Args:
            used: 0 when it was refused or never left; None when nobody knows.
        """
        if used or used is None:  # a provider that never says what it used can't be held to it
            average, told = self._average, used or 0.0
            if used or average is None:
                self._average = told if average is None else average + (told - average) * _SMOOTHING
        self._leaving = max(0, self._leaving - 1)
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
            if self._token:
                self._budget.charge(self._now(), more * self._token)

    def state(self) -> PacerState:
        """What is known now, for a screen."""
        now = self._now()
        paces = [quota.pace(now) for quota in self._quotas]
        return PacerState(requests=paces[0], tokens=paces[1], told=self.told)
