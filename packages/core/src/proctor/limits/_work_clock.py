"""The working clock of a sample: time that passes while it waits for others does not count."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["WorkClock"]

_LONGEST_HISTORY = 200  # spans; a sample with more of them than this at once gets its oldest requests decided early


class WorkClock:
    """Tells working time from waiting time, for a sample whose branches wait and work at once.

    A branch waits while it is in a pause (for a gate, a back-off, a sandbox) and during a request that failed and is
    sent again. A moment counts as waiting when some branch waits and no request of another branch is in flight that is
    answered in the end; until its outcome is known, a request counts as work. So parallel waits count once, one busy
    branch keeps the clock of the whole sample going, and ``0 <= working_time() <= elapsed()``. What a branch does
    without a request (its own code, a tool) is not seen while another one waits.

    Times are in seconds of ``clock``, which never goes back.
    """

    __slots__ = (
        "_answered",
        "_clock",
        "_counted",
        "_key",
        "_open",
        "_pauses",
        "_shown",
        "_since",
        "_waited",
        "started",
    )

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pauses = 0
        self._key = 0
        self._open: dict[int, float] = {}  # when the requests without an outcome were sent, oldest first
        # What a request that is still open may have to share its time with, should it fail:
        self._answered: list[tuple[float, float]] = []
        self._counted: list[tuple[float, float]] = []  # failed requests, as far as they counted
        self._waited = 0.0
        self._shown = 0.0
        self.started = self._since = clock()

    @property
    def waiting(self) -> bool:
        """Whether the clock stands still."""
        return self._pauses > 0 and not self._open

    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self.started

    def waited(self) -> float:
        """Seconds of waiting so far."""
        return self._waited + (self._clock() - self._since if self.waiting else 0.0)

    def worked(self) -> float:
        """Seconds of work so far; less than before when a request, work until now, turned out to have failed."""
        return max(0.0, self.elapsed() - self.waited())

    def working_time(self) -> float:
        """Seconds of work so far, never less than at an earlier look: what records and logs say."""
        # Every event of a sample asks: spelt out, it costs a quarter of asking `worked`.
        now = self._clock()
        worked = now - self.started - self._waited
        if self._pauses and not self._open:
            worked -= now - self._since
        if worked > self._shown:
            self._shown = worked
        return self._shown

    def pause(self) -> None:
        """A branch begins to wait."""
        self._pass()
        self._pauses += 1

    def resume(self) -> None:
        """A branch that waited goes on."""
        self._pass()
        self._pauses -= 1

    def sent(self) -> int:
        """A request goes out; the number is for ``answered`` or ``failed``."""
        self._open[self._key] = self._pass()
        self._key += 1
        return self._key - 1

    def answered(self, request: int) -> None:
        """The request was work: it was answered, refused for good, or given up by the sample itself."""
        now = self._pass()
        start = self._open.pop(request)
        if self._open:
            self._answered.append((start, now))
        self._forget(now)

    def failed(self, request: int) -> None:
        """The request was a wait: it failed, and is sent again unless the retries are used up."""
        now = self._pass()
        start = self._open.pop(request)
        others = [(sent, now) for sent in self._open.values()]
        for span in _gaps(start, now, [*self._answered, *self._counted, *others]):
            self._waited += span[1] - span[0]
            self._counted.append(span)
        self._forget(now)

    def _pass(self) -> float:
        """Count the time since the last change as what it was, and return the time now."""
        now = self._clock()
        if self._pauses and not self._open:
            self._waited += now - self._since
        self._since = now
        return now

    def _forget(self, now: float) -> None:
        """Drop the spans that no open request overlaps."""
        if not self._open:
            if self._answered or self._counted:
                self._answered, self._counted = [], []
        elif len(self._answered) + len(self._counted) > _LONGEST_HISTORY:
            oldest = next(iter(self._open.values()))
            self._answered = [span for span in self._answered if span[1] > oldest]
            self._counted = [span for span in self._counted if span[1] > oldest]
            if len(self._answered) + len(self._counted) > _LONGEST_HISTORY:
                self._open = dict.fromkeys(self._open, now)
                self._answered, self._counted = [], []


def _gaps(start: float, end: float, taken: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The parts of ``start`` to ``end`` that none of ``taken`` covers."""
    gaps: list[tuple[float, float]] = []
    for first, last in sorted(taken):
        if first >= end:
            break
        if first > start:
            gaps.append((start, first))
        start = max(start, last)
    if start < end:
        gaps.append((start, end))
    return gaps
