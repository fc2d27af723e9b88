"""How fast samples finish, and so how long the rest will take."""

from __future__ import annotations

from collections import deque

__all__ = ["Pace"]

_WINDOW = 60.0  # seconds: long enough for slow models, short enough to follow a rate limit that moves
_STEP = 0.5  # seconds between the points that are kept


class Pace:
    """Samples a second over the last minute, from pairs of elapsed seconds and a count."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()

    def note(self, elapsed: float, done: int) -> None:
        """At ``elapsed`` seconds, ``done`` samples had finished."""
        points = self._points
        # The first and the newest point count; those between are thinned, so an hour of updates stays 120 points.
        if len(points) > 1 and elapsed - points[-2][0] < _STEP:
            points[-1] = (elapsed, done)
        else:
            points.append((elapsed, done))
        while len(points) > 2 and elapsed - points[1][0] >= _WINDOW:
            points.popleft()

    @property
    def rate(self) -> float:
        """Samples a second; 0 as long as nothing finished."""
        if len(self._points) < 2:
            return 0.0
        (start, first), (end, last) = self._points[0], self._points[-1]
        return (last - first) / (end - start) if end > start else 0.0

    def left(self, done: int, total: int | None) -> float | None:
        """Seconds until ``total`` are done, ``None`` while nobody can tell."""
        rate = self.rate
        if total is None or rate <= 0:
            return None
        return max(0, total - done) / rate
