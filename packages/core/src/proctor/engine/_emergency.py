"""The end of a run whose event loop can't end it: from a thread, with the logs finished as far as samples came.

Code that blocks the loop keeps everything in it from running: deadlines, cancellations, the way out after a signal. A
thread sees to what must hold all the same.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple, Protocol

from proctor.concurrency import left_behind
from proctor.engine._deadline import GRACE, STOP
from proctor.monitor import LoopWatch

__all__ = ["STOP_TIMEOUT", "Emergency", "Ending", "leave", "leave_unless_ended", "patience_with_loop"]

STOP_TIMEOUT = 25.0
"""Seconds that a run has to end after SIGTERM: schedulers send SIGKILL 30 s after it."""

_LOOK = 0.25  # seconds between two looks
_LOGS = 10.0  # seconds that the logs have to be finished
_SCREEN = 2.0  # seconds that the screen has for its last picture
_LEAVE = 5.0  # seconds that an event loop has to end when the run is over
_LEAVE_STUCK = 1.0  # the same where something was left behind already: it is likely not to end at all
# Where the threads are made that run what would block the event loop.
_WORKERS = ("trio._core._thread_cache", "anyio._backends._asyncio")


class Why(NamedTuple):
    """What has to be ended, and how."""

    code: int
    text: str
    error: bool
    """Whether that is an error of the units; else they were cancelled."""


class Ending(Protocol):
    """A unit that may have to be ended from outside."""

    def overdue(self) -> float:
        """Seconds for which the sample that is over its time limit the longest is over it; negative: none is."""
        ...

    def end(self, why: str, *, error: bool) -> None:
        """Finish the log with what there is; blocks."""
        ...


class Emergency:
    """Watches a run from a thread.

    Args:
        watch: of the event loop.
        units: those that run.
        last: called before the process ends, with its exit code: the last word to a person.
        stop_timeout: seconds that the run has after SIGTERM.
    """

    def __init__(
        self,
        watch: LoopWatch,
        units: Callable[[], Iterable[Ending]],
        last: Callable[[int, str], None],
        stop_timeout: float | None = None,
    ) -> None:
        self._watch = watch
        self._units = units
        self._last = last
        self._stop_timeout = STOP_TIMEOUT if stop_timeout is None else stop_timeout
        self._signal = 0
        self._signalled = 0.0
        self._starved = False
        self._over = threading.Event()
        self._hook = threading.excepthook
        self._own_hook = self._thread_died  # bound once, to be known again

    def start(self) -> None:
        """Begin to watch."""
        self._hook, threading.excepthook = threading.excepthook, self._own_hook
        threading.Thread(target=self._run, name="proctor-emergency", daemon=True).start()

    def signalled(self, number: int) -> None:
        """SIGINT or SIGTERM has come."""
        self._signalled = time.monotonic()
        self._signal = number

    def close(self) -> None:
        """The run has ended as it should."""
        self._over.set()
        if threading.excepthook is self._own_hook:
            threading.excepthook = self._hook

    def _thread_died(self, args: threading.ExceptHookArgs) -> None:
        """On a thread that raised: whoever waits for a worker of the loop's that died waits forever."""
        if issubclass(args.exc_type, MemoryError):
            trace = args.exc_traceback
            while trace is not None:
                self._starved = self._starved or trace.tb_frame.f_globals.get("__name__") in _WORKERS
                trace = trace.tb_next
        self._hook(args)

    def _run(self) -> None:
        before: Why | None = None
        while not self._over.wait(_LOOK):
            try:
                why = self.reason(time.monotonic())
            except MemoryError:
                continue
            # Twice in a row, since a process that was stopped finds all its times over when it goes on.
            if why is not None and before is not None:
                self._end(why)
            before = why

    def reason(self, now: float) -> Why | None:
        """Why the process has to be ended, if it has to."""
        if self._starved:
            return Why(1, "there is no memory left, and a thread that samples wait for has died of it", True)
        code = 128 + self._signal
        if self._signal == signal.SIGTERM and now - self._signalled > self._stop_timeout:
            return Why(code, f"the run had not ended {self._stop_timeout:g} s after SIGTERM (--stop-timeout)", False)
        state = self._watch.state()
        if not self._watch.watching or state.lag < STOP:
            return None
        where = f" in {state.place}" if state.place is not None else ""
        if self._signal and now - self._signalled > STOP + 1:
            return Why(code, f"the event loop stands still{where}, so the run could not end by itself", False)
        if max((unit.overdue() for unit in self._units()), default=-1.0) > GRACE:
            return Why(1, f"the event loop stands still{where}, and the time limit of a sample is over", True)
        return None

    def _end(self, why: Why) -> None:
        try:
            self._finish_all(why)
        except (MemoryError, RuntimeError):  # no thread can be started: logs have what was acknowledged
            pass
        finally:
            leave(why.code)

    def _finish_all(self, why: Why) -> None:
        threads = [
            threading.Thread(target=_finish, args=(unit, why), name="proctor-emergency-log", daemon=True)
            for unit in self._units()
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + _LOGS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        last = threading.Thread(target=self._last, args=(why.code, why.text), daemon=True)
        last.start()
        last.join(_SCREEN)


def _finish(unit: Ending, why: Why) -> None:
    with suppress(Exception):  # what was acknowledged can be read back all the same
        unit.end(why.text, error=why.error)


def leave(code: int) -> None:
    """End the process, whatever its threads do; what was printed is written out first, if that can be done."""
    with suppress(MemoryError, RuntimeError):
        flushed = threading.Thread(target=_flush, daemon=True)
        flushed.start()
        flushed.join(_SCREEN)
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def leave_unless_ended(last: Callable[[], int]) -> threading.Timer:
    """End the process in a while, with the code that ``last`` returns, unless the timer is cancelled before.

    For when the run is over and its event loop has to end: tasks that swallow their cancellation keep it going.
    """
    timer = threading.Timer(patience_with_loop(), lambda: leave(last()))
    timer.daemon = True
    timer.start()
    return timer


def patience_with_loop() -> float:
    """Seconds that the event loop has to end when the run is over."""
    return _LEAVE_STUCK if left_behind() else _LEAVE
