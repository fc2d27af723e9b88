"""Finds out that the event loop stood still, for how long, and in whose code.

The loop writes the time down four times a second (a beat). A thread looks whether it still does; when it has not for a
while, the thread takes the stack of the loop's thread during the stall, which is the only time when it tells anything.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import anyio

from proctor.monitor._activity import settled
from proctor.monitor._place import Place, blocking_place

__all__ = ["LoopState", "LoopWatch", "Stall", "loop_watch", "use_loop_watch"]

BEAT = 0.25
"""Seconds between two beats."""
STALL = 1.0
"""Seconds without a beat, beside those between two, that are a stall."""
_SO_FAR = 5.0  # seconds after which a stall that is not over is told of
_KEPT = 1000  # stalls


@dataclass(slots=True)
class Stall:
    """The stalls in one place.

    Attributes:
        place: where the loop's thread was.
        count: how often.
        seconds: all together.
        longest: seconds of the longest.
    """

    place: Place
    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def record(self) -> dict[str, Any]:
        """As JSON data, for a log."""
        seconds = {"count": self.count, "seconds": round(self.seconds, 3), "longest": round(self.longest, 3)}
        return {"where": self.place.where, "code": self.place.code, **seconds}


class LoopState(NamedTuple):
    """How late the loop is now, and was at most, in seconds; and where it stands still, if it does."""

    lag: float
    longest: float
    place: Place | None


class LoopWatch:
    """Watches the event loop that ``beat`` runs in.

    Args:
        on_stall: told of a stall, once for each place, on the watching thread: where, for how many seconds, and whether
            it goes on.
        clock: seconds of a clock that never goes back.
        busy: seconds that the process has used the processor for.
        interval: seconds between beats; ``None`` = ``BEAT``.
        threshold: seconds without a beat that are a stall; ``None`` = ``STALL``.
    """

    def __init__(
        self,
        on_stall: Callable[[Place, float, bool], None] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        busy: Callable[[], float] = time.process_time,
        interval: float | None = None,
        threshold: float | None = None,
    ) -> None:
        self._on_stall = on_stall
        self._clock = clock
        self._busy = busy
        self._interval = BEAT if interval is None else interval
        self._threshold = STALL if threshold is None else threshold
        self._thread_id = threading.get_ident()
        self._last = clock()
        self._longest = 0.0
        self._place: Place | None = None  # of the stall that goes on
        self._spans: deque[tuple[float, float, Place]] = deque(maxlen=_KEPT)
        self._told: set[str] = set()
        self._over = threading.Event()
        self._began = False

    @property
    def watching(self) -> bool:
        """Whether the loop beats: one that is over stands still for ever."""
        return self._began and not self._over.is_set()

    async def beat(self, each: Callable[[], None] = lambda: None) -> None:
        """Write the time down for ever, and call ``each`` with it; watches from here on.

        Args:
            each: something else that is to be done in the loop from time to time.
        """
        self._thread_id = threading.get_ident()
        self._last = self._clock()
        thread = threading.Thread(target=self._watch, name="proctor-watchdog", daemon=True)
        thread.start()
        self._began = True
        try:
            while True:
                await anyio.sleep(self._interval)
                self.beaten()
                each()
        finally:
            self._over.set()

    def beaten(self) -> None:
        """The loop runs; whoever wants to know of a stall that has just ended calls it, too, in the loop."""
        now = self._clock()
        late = now - self._last - self._interval
        if late > self._threshold and self._place is not None:
            self._end(self._last + self._interval, now)
        elif late > self._threshold:
            late = 0.0  # the watching thread did not run either: the process was stopped
        self._longest = max(self._longest, late)
        self._place = None
        self._last = now

    def state(self) -> LoopState:
        """How late the loop is; may be asked on any thread."""
        lag = max(0.0, self._clock() - self._last - self._interval)
        return LoopState(lag, max(lag, self._longest), self._place)

    def stalls(self, since: float = 0.0) -> list[Stall]:
        """The stalls since then, those in one place together, the worst place first."""
        found: dict[str, Stall] = {}
        for start, end, place in settled(self._spans):
            if end > since:
                stall = found.setdefault(place.where, Stall(place))
                seconds = end - max(start, since)
                stall.count += 1
                stall.seconds += seconds
                stall.longest = max(stall.longest, seconds)
        return sorted(found.values(), key=lambda stall: -stall.seconds)

    def stood_still(self, since: float) -> tuple[float, Place | None]:
        """Seconds, of those since then, in which the loop stood still, and where it did the longest."""
        parts = [(end - max(start, since), place) for start, end, place in settled(self._spans) if end > since]
        if not parts:
            return 0.0, None
        return sum(seconds for seconds, _ in parts), max(parts, key=lambda part: part[0])[1]

    def _watch(self) -> None:
        """On the thread: look at the loop as often as it should beat."""
        looked, busy = self._clock(), self._busy()
        while not self._over.wait(self._interval):
            now, used = self._clock(), self._busy()
            with suppress(Exception):  # whatever it is, a run goes on without its watchdog
                self.look(now, now - looked, used - busy)
            looked, busy = now, used

    def look(self, now: float, passed: float, used: float) -> None:
        """Look at the loop.

        Args:
            now: the time.
            passed: seconds since the last look.
            used: seconds of them that the process has used the processor for.
        """
        if passed > self._interval + self._threshold / 2 and used < passed / 2:
            # This thread did not run either and nothing kept it: the whole process was stopped, or starved.
            self._last = min(now, self._last + passed - self._interval)
            return
        last = self._last
        late = now - last - self._interval
        if late <= self._threshold / 2:  # earlier than it is told of: none should end between two looks
            return
        if self._place is None:
            frame = sys._current_frames().get(self._thread_id)
            place = None if frame is None else blocking_place(frame)
            del frame
            if self._last == last:  # else it went on meanwhile
                self._place = place
        elif late > max(_SO_FAR, self._threshold):
            self._tell(self._place, late, True)

    def _end(self, start: float, end: float) -> None:
        place = self._place
        if place is not None:
            self._spans.append((start, end, place))
            self._tell(place, end - start, False)

    def _tell(self, place: Place, seconds: float, goes_on: bool) -> None:
        if place.where not in self._told:
            self._told.add(place.where)
            if self._on_stall is not None:
                self._on_stall(place, seconds, goes_on)


_current: ContextVar[LoopWatch | None] = ContextVar("proctor_loop_watch", default=None)


def loop_watch() -> LoopWatch | None:
    """What watches the loop of this run; None outside of any."""
    return _current.get()


@contextmanager
def use_loop_watch(watch: LoopWatch) -> Iterator[None]:
    """Make ``watch`` that of the code inside: one that beats no more would take all later time for a stall."""
    token = _current.set(watch)
    try:
        yield
    finally:
        _current.reset(token)
