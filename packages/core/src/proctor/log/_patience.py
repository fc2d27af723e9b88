"""Waiting for a full disk, or a store that is out of reach."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

from proctor.log._location import contained_store

__all__ = ["Patience"]

_RETRY = 1.0  # seconds between tries
_HURRY = 1.0  # seconds in which a last try is made when somebody is in a hurry
_WAITABLE = (errno.ENOSPC, errno.EDQUOT)
_FOR_GOOD = (FileExistsError, FileNotFoundError, PermissionError)  # what a store says that will say it again


class Patience:
    """Tries a write again: until there is space, without end, since what waits to be written was paid for."""

    def __init__(self) -> None:
        self.stalled: str | None = None
        """Why writing waits, while it does."""
        self._deadline = float("inf")

    def hurry(self) -> None:
        """Wait for a moment more at most: the run is to end. Takes no lock, so a signal's handler may call it."""
        self._deadline = min(self._deadline, time.monotonic() + _HURRY)

    def write(
        self,
        location: str,
        attempt: Callable[[], object],
        undo: Callable[[], object] | None = None,
        *,
        away: float | None = None,
    ) -> None:
        """Call ``attempt`` until it succeeds.

        Args:
            location: of the log, for the person who is told why the run waits.
            attempt: writes; what it raises for any other reason than a lack of space goes on its way.
            undo: called after each failure, so that readers find a whole log meanwhile.
            away: seconds for which a store is tried that is out of reach; it is not for one on this machine.

        Raises:
            OSError: what ``attempt`` raised last, when the time is over.
        """
        until = None if away is None else time.monotonic() + away
        try:
            while True:
                try:
                    with contained_store(location):
                        attempt()
                    return
                except OSError as error:
                    if undo is not None:
                        undo()
                    if (why := _waits(error, location, until)) is None or time.monotonic() > self._deadline:
                        raise
                    self.stalled = why
                time.sleep(_RETRY)
        finally:
            self.stalled = None


def _waits(error: OSError, location: str, until: float | None) -> str | None:
    """What is waited for after ``error``; ``None`` when waiting does not help, or has taken long enough."""
    if error.errno in _WAITABLE:
        return f"no space left for {location}: free some, and the run goes on"
    if until is None or time.monotonic() > until or isinstance(error, _FOR_GOOD):
        return None
    return f"{error.strerror or error}: {location} is tried again"
