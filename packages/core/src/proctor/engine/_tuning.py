"""The interpreter as a run wants it, and as it was once the last run of the process is over."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["tuned_interpreter"]

_lock = threading.Lock()
_runs = 0
_before: tuple[tuple[int, int, int], float] = ((700, 10, 10), 0.005)


@contextmanager
def tuned_interpreter() -> Iterator[None]:
    """Collect garbage less often, and let no thread keep the event loop waiting for long.

    A sample makes hundreds of short-lived objects that reference counts free already: the usual thresholds cost an
    eighth of the engine's time, most of it in looking again at modules that stay. A thread that encodes a log may hold
    the interpreter for 5 ms at a time by default, for which a hundred answers then wait.

    Runs in several threads share the settings, which belong to the process: the first makes them, the last ends them.
    """
    global _runs, _before
    with _lock:
        _runs += 1
        if _runs == 1:
            _before = gc.get_threshold(), sys.getswitchinterval()
            gc.freeze()
            gc.set_threshold(200_000, 20, 20)  # more than the samples hold that wait for the log
            sys.setswitchinterval(0.001)
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if _runs == 0:
                threshold, interval = _before
                sys.setswitchinterval(interval)
                gc.set_threshold(*threshold)
                gc.unfreeze()
