"""Waiting for a full disk."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

__all__ = ["Patience"]

_RETRY = 1.0  # seconds between tries
_HURRY = 1.0  # seconds in which a last try is made when somebody is in a hurry
_WAITABLE = (errno.ENOSPC, errno.EDQUOT)


class Patience:
    """Tries a write again until there is space, without end: what waits to be written was paid for."""

    def __init__(self) -> None:
        self.stalled: str | None = None
        """Why writing waits, while it does."""
        self._deadline = float("inf")

    def hurry(self) -> None:
        """Wait for a moment more at most: the run is to end. Takes no lock, so a signal's handler may call it."""
        self._deadline = min(self._deadline, time.monotonic() + _HURRY)

    def write(self, location: str, attempt: Callable[[], object], undo: Callable[[], object] | None = None) -> None:
        """Call ``attempt`` until it succeeds.

        Args:
            location: of the log, for the person who is told why the run waits.
            attempt: writes; what it raises for any other reason than a lack of space goes on its way.
            undo: called after each failure, so that readers find a whole log meanwhile.

        Raises:
            OSError: what ``attempt`` raised last, when the time is over.
        """
        try:
            while True:
                try:
                    attempt()
                    return
                except OSError as error:
                    if undo is not None:
                        undo()
                    if error.errno not in _WAITABLE or time.monotonic() > self._deadline:
                        raise
                    self.stalled = f"no space left for {location}: free some, and the run goes on"
                time.sleep(_RETRY)
        finally:
            self.stalled = None
