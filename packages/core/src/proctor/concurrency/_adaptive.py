"""Finds how many requests a provider takes at once, and stays just under that.

All of it is arithmetic on what happened: no tasks, no timers, a clock that is handed in. In short:

- The limit starts at ``start`` and grows by one per clean answer, so it doubles per round, until the first refusal.
- A refusal cuts it to just under the level that was refused, once for all that was sent before the cut (an episode);
  places that others of the episode give back stay closed, down to half. When nothing that is sent after a cut gets
  through, the cuts grow, so any fall of the capacity is followed in a few steps.
- From then on it grows after clean rounds only: quickly where nothing was ever refused, up to just under the last
  refusal; then one slot at a time as a probe. Each probe that fails at the same level makes the next one rarer, since
  it costs a sample a retry; a probe that succeeds starts quick growth again.
- New slots never open in a burst, however many answers come together: at least half a latency passes while the limit
  doubles. So the first refusal is back before many more were sent, and growth stops with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from proctor.concurrency._adaptive_types import AdaptiveLimits, AdaptiveState, LimitChange, Reason, Token

__all__ = ["AdaptiveController", "AdaptiveLimits", "AdaptiveState", "LimitChange", "Token"]

_SPREAD = 0.5  # of a latency: the shortest time in which the limit may double
_SMOOTHING = 0.125  # weight of a new latency in the average (as in TCP's smoothed round-trip time, RFC 6298)
_RAREST = 8  # clean rounds between probes of a level that was refused again and again
_NEAR = 0.1  # how far apart two refused levels may be and still count as the same capacity
_JITTER = 100  # one part in so many is what the level that a client counts may differ from the server's
_TROUBLE = 16  # clean answers that make up for one server error; all together at most a round
_FIRST_HOLD = 0.25  # seconds, doubled per refusal
_LONGEST_HOLD = 15.0
_REPEATED = 4  # rounds of answers to repeated requests, and nothing else, that count as one
_FUTILE = 3  # refusals in a row, at the smallest limit, after which nothing is sent for a while


class AdaptiveController:
    """Moves a limit of requests in flight between two bounds, by what the provider answers.

    Call ``sent`` when a request leaves, and with what it returns exactly one of ``succeeded``, ``repeated``,
    ``refused``, ``troubled`` and ``neutral`` when it comes back, before its place is given to another. Between these
    calls slots may fall due (``due``): call ``tend`` then.

    Args:
        limits: the bounds and the start.
        now: seconds of a clock that never goes back.
        on_change: is told of each change.
    """

    __slots__ = (
        "_accepted",
        "_again",
        "_answers",
        "_ceiling",
        "_clean",
        "_credit",
        "_cut",
        "_debt",
        "_floor",
        "_fruitless",
        "_grown",
        "_hold",
        "_in_flight",
        "_latency",
        "_limit",
        "_mark",
        "_next",
        "_now",
        "_on_change",
        "_passed",
        "_peak",
        "_reason",
        "_refusals",
        "_rounds",
        "_sent",
        "_since",
        "_slow",
        "_step",
        "_used",
        "limits",
    )

    def __init__(
        self,
        limits: AdaptiveLimits,
        *,
        now: Callable[[], float] = time.monotonic,
        on_change: Callable[[LimitChange], None] | None = None,
    ) -> None:
        self.limits = limits
        self._now = now
        self._on_change = on_change
        self._limit = limits.start
        self._reason: Reason | None = None  # why it moved last,
        self._since = 0.0  # and when that began
        self._sent = 0  # the number of the latest request
        self._in_flight = 0
        self._latency: float | None = None
        self._slow = True
        self._credit = 0  # slots that may open, one at a time,
        self._next = 0.0  # not before this time
        self._cut = 0  # requests up to this number were sent before the last cut
        self._mark = 0  # requests up to this number say nothing about the limit that holds now
        self._clean = 0  # clean answers of the round
        self._again = 0  # answers to repeated requests since anything else happened
        self._debt = 0  # clean answers that make up for server errors first
        self._passed = 0  # the highest level that got through in the round
        self._ceiling: int | None = None  # the level that was refused last
        self._rounds = 1  # clean rounds before the next probe of the ceiling
        self._step = 1  # slots that the next clean round opens
        self._grown = False  # whether the limit grew since the last cut
        self._accepted = 0  # how many of those sent before the last cut may have got through
        self._floor = 0  # where the last cut ends, whatever comes back refused of its episode
        self._fruitless = 0  # cuts since anything got through
        self._refusals = 0
        self._peak = self._used = 0  # most in flight: in this round of answers, and in the one before
        self._answers = 0  # of this round
        self._hold = 0.0

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        return self._limit

    def tend(self) -> None:
        """Open the slots that fell due since anything happened."""
        if self._credit:
            self._open(self._now())

    @property
    def in_flight(self) -> int:
        """How many requests were sent and did not come back."""
        return self._in_flight

    def due(self) -> float | None:
        """Seconds until the limit grows by itself, without an answer; None when it does not."""
        return max(0.0, self._next - self._now()) if self._credit else None

    def hold(self) -> float:
        """Seconds for which nothing should be sent, since everything is refused: nearly always 0."""
        return max(0.0, self._hold - self._now()) if self._hold else 0.0

    def sent(self, in_flight: int | None = None) -> Token:
        """A request leaves.

        Args:
            in_flight: how many are in flight with it, this one included, when others than this controller's count.
        """
        self._sent = number = self._sent + 1
        level = self._in_flight = self._in_flight + 1
        if in_flight is not None:
            level = in_flight
        if level > self._peak:
            self._peak = level
        return number, self._now(), level

    def succeeded(self, token: Token) -> None:
        """It was answered, at the first attempt."""
        number, left, level = token
        self._in_flight -= 1
        now = self._now()
        latency = self._latency
        self._latency = now - left if latency is None else latency + (now - left - latency) * _SMOOTHING
        self._answers += 1
        if self._answers >= self._limit:
            self._used, self._peak, self._answers = self._peak, level, 0
        self._again = 0
        if number > self._cut:
            self._fruitless = 0
            self._hold = 0.0
        # Half of the limit unused: nobody knows what it would be to use more.
        if number > self._mark and 2 * max(self._peak, self._used) > self._limit:
            if self._debt:
                self._debt -= 1
            elif self._slow:
                if not self._credit:
                    self._next = max(self._next, now)
                if self._credit < self._limit:
                    self._credit += 1
            else:
                self._clean += 1
                if level > self._passed:
                    self._passed = level
                if self._clean >= self._needed():
                    self._round(now)
        if self._credit:
            self._open(now)

    def refused(self, token: Token, after: float | None = None) -> None:
        """The provider asked for less.

        Args:
            after: seconds that it asked to wait. They bind the request that was refused; the limit does not wait.
        """
        number, _, level = token
        self._in_flight -= 1
        self._refusals += 1
        self._again = 0
        now = self._now()
        if number > self._cut:
            self._new_episode(now, level, after)
            return
        self._accepted -= 1
        new = max(self._accepted, self._floor)
        if new < self._limit and not self._grown:
            self._change(now, new, "rate_limit", more=True)

    def _new_episode(self, now: float, level: int, after: float | None) -> None:
        old = self._limit
        level = min(level, old)
        # A probe was refused where one was before: the capacity stands. All other refusals say that it moves.
        near = self._ceiling is not None and abs(level - self._ceiling) <= max(1.0, _NEAR * self._ceiling)
        probed = self._grown and near
        self._rounds = min(2 * self._rounds, _RAREST) if probed else 1
        # Doubled with each cut that brought no success: 40 is at 9 and 400 at 20 after a few refusals.
        slots = (1 if probed else max(1, level // _JITTER)) << min(self._fruitless, 20)
        new = max(self.limits.min, level - slots)
        self._fruitless += 1
        self._slow = self._grown = False
        self._ceiling = max(level, new + 1)
        self._step = 1
        self._accepted = max(self._in_flight, level - 1)
        self._floor = max(self.limits.min, old // 2)
        self._cut = self._mark = self._sent
        self._credit = self._clean = self._passed = self._debt = 0
        if new < old:
            self._change(now, new, "rate_limit")
        elif self._fruitless >= _FUTILE:
            wait = _FIRST_HOLD * 2.0 ** min(self._fruitless - _FUTILE, 10) if after is None else after
            self._hold = now + min(max(wait, _FIRST_HOLD), _LONGEST_HOLD)

    def troubled(self, token: Token) -> None:
        """It failed for another reason that may pass: server error, time-out, network."""
        self._in_flight -= 1
        self._credit = 0
        self._debt = min(self._debt + _TROUBLE, self._limit)

    def repeated(self, token: Token) -> None:
        """It was answered, but not at the first attempt: something gets through, which does not show room for more.

        Only when nothing else comes back for some rounds, no refusal either, that counts as one round: else the limit
        would stay at its lowest until all that a long outage refused is done.
        """
        self._in_flight -= 1
        if token[0] > self._cut:
            self._fruitless = 0
            self._hold = 0.0
            self._again += 1
            if self._again >= _REPEATED * self._limit and not self._slow:
                self._again = 0
                self._round(self._now())
        if self._credit:
            self._open(self._now())

    def neutral(self, token: Token) -> None:
        """It came back in a way that says nothing: answered by a cache, or cancelled."""
        self._in_flight -= 1

    def adopt(self, limit: int) -> None:
        """Take over a limit that somebody else found: another process with the same credential.

        ``on_change`` is not told.
        """
        old, limit = self._limit, max(self.limits.min, min(limit, self.limits.max))
        if limit == old:
            return
        if limit < old:
            self._slow = self._grown = False
            self._ceiling = limit + 1
            self._cut = self._mark = self._sent
            self._accepted = self._floor = limit
            self._credit = self._clean = self._passed = 0
        self._move(self._now(), limit, "rate_limit" if limit < old else "steady_state_up")

    def state(self) -> AdaptiveState:
        """What is known now, for a screen: it only reads, since a screen has a thread of its own."""
        limit = self._limit
        return AdaptiveState(
            limit=limit,
            in_flight=self._in_flight,
            phase="slow_start" if self._slow else "steady",
            refused_at=self._ceiling,
            latency=self._latency,
            round=min(1.0, self._clean / self._needed()),
            refusals=self._refusals,
            hold=self.hold(),
        )

    def _needed(self) -> int:
        """Clean answers before the limit grows: a round, or some before the level that was refused is tried again."""
        return self._limit * (self._rounds if self._ceiling == self._limit + 1 else 1)

    def _round(self, now: float) -> None:
        """A clean round is over: decide how many slots the next one opens."""
        if self._ceiling is not None and self._passed >= self._ceiling:
            self._ceiling = None
            self._rounds = self._step = 1
        self._clean = self._passed = 0
        if self._ceiling is None:
            room = self._step
            self._step = min(2 * self._step, self._limit)
        elif self._limit < self._ceiling - 1:
            room = min(self._step, self._ceiling - 1 - self._limit)
            self._step = min(2 * self._step, self._limit)
        elif self._limit < self._ceiling:
            room = 1
            self._mark = self._sent  # what was sent before the probe opened can't tell of it
        else:
            room = 0  # a probe is open, and nothing was sent at its level yet
        if not self._credit:
            self._next = max(self._next, now)
        self._credit = room

    def _open(self, now: float) -> None:
        """Open the slots that are due."""
        late = now - self._next
        room = self.limits.max - self._limit
        if room <= 0:
            self._credit = 0
        if late < 0 or room <= 0:
            return
        interval = max((self._latency or 0.0) * _SPREAD / self._limit, 1e-6)
        # Whoever looks late finds several slots due, but never a burst.
        burst = max(1, self._limit >> 4)
        slots = min(1 + int(late / interval), burst)
        self._next = now + interval if slots == burst else self._next + slots * interval
        slots = min(slots, self._credit, room)
        self._credit -= slots
        self._grown = True
        reason: Reason = "slow_start" if self._slow else "steady_state_up"
        more = now - self._since < (self._latency or 0.0)
        self._change(now, self._limit + slots, reason, more=more)

    def _change(self, now: float, new: int, reason: Reason, *, more: bool = False) -> None:
        old, more = self._limit, more and reason == self._reason
        self._move(self._since if more else now, new, reason)
        if self._on_change is not None:
            self._on_change(LimitChange(old, new, reason, more))

    def _move(self, since: float, new: int, reason: Reason) -> None:
        self._limit, self._reason, self._since = new, reason, since
