"""Threads for calls that block: as many as are asked for, and none that the run ever has to wait for.

The event loop's own worker threads are few, are shared with everybody, and keep the interpreter from ending while one
of them hangs. These are daemons, and whoever is cancelled leaves the thread to itself.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import anyio
from anyio.lowlevel import current_token

__all__ = ["Threads"]

T = TypeVar("T")

_IDLE_SECONDS = 20.0
_LOOK_SECONDS = 0.02


class Threads:
    """A pool of daemon threads with a capacity of its own.

    Args:
        name: of the threads.
        capacity: calls at once; further ones wait in the event loop.
    """

    def __init__(self, name: str, capacity: int) -> None:
        self._name = name
        self._capacity = anyio.Semaphore(capacity)
        self._jobs: queue.SimpleQueue[_Job[Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._left: list[_Job[Any]] = []

    async def run(
        self,
        work: Callable[[], T],
        *,
        abandon: Callable[[], None] | None = None,
        dispose: Callable[[T], None] | None = None,
    ) -> T:
        """What ``work`` returns or raises, called in a thread.

        Args:
            work: what is called.
            abandon: called in the event loop when the caller was cancelled, to wake the thread.
            dispose: called in the thread with a result that nobody waits for any more.
        """
        async with self._capacity:
            job = _Job(work, dispose)
            self._submit(job)
            try:
                await job.done.wait()
            except BaseException:
                self._leave(job, abandon, dispose)
                raise
            return job.result()

    def _leave(self, job: _Job[T], abandon: Callable[[], None] | None, dispose: Callable[[T], object] | None) -> None:
        """Its caller was cancelled, perhaps when it had its result already."""
        goes_on = job.leave()
        if goes_on and abandon is not None:
            abandon()
        if dispose is None:
            return
        rest: _Job[Any] = job
        if not goes_on:
            rest = _Job(lambda: dispose(job.result()), None, waited_for=False)
            self._submit(rest)
        self._left = [*(each for each in self._left if not each.over), rest]

    async def settle(self, seconds: float) -> bool:
        """Wait until what callers that were cancelled have left is disposed of, so long at most; whether it is.

        What is not by then is given up: it is not waited for again.
        """
        with anyio.move_on_after(seconds):
            while any(not job.over for job in self._left):  # noqa: ASYNC110  # threads set no event of the loop
                await anyio.sleep(_LOOK_SECONDS)
        given_up, self._left = [job for job in self._left if not job.over], []
        return not given_up

    def start(self, work: Callable[[], object]) -> None:
        """Call ``work`` in a thread that nobody waits for; what it raises is dropped."""
        self._submit(_Job(work, None, waited_for=False))

    def _submit(self, job: _Job[Any]) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1  # one of those that wait is taken by this job
                self._jobs.put(job)
                return
        threading.Thread(target=self._serve, args=(job,), name=self._name, daemon=True).start()

    def _serve(self, job: _Job[Any] | None) -> None:
        while job is not None:
            job.run()
            # While it is idle a thread does not hold on to what was made or raised, and all that hangs on it.
            job = None
            job = self._next()

    def _next(self) -> _Job[Any] | None:
        with self._lock:
            self._idle += 1
        with suppress(queue.Empty):
            return self._jobs.get(timeout=_IDLE_SECONDS)
        with self._lock:  # a job may have been put down for this thread just now
            if self._jobs.empty():
                self._idle -= 1
                return None
            return self._jobs.get()


class _Job(Generic[T]):
    def __init__(self, work: Callable[[], T], dispose: Callable[[T], None] | None, waited_for: bool = True) -> None:
        self._work = work
        self._dispose = dispose
        self._lock = threading.Lock()
        self._left = not waited_for
        self._ended = False
        self.over = False
        """Whether its thread has nothing to do with it any more."""
        self._value: T
        self._error: BaseException | None = None
        if waited_for:
            self.done = anyio.Event()
            token: Any = current_token()
            loop = getattr(token, "native_token", token)  # older versions of anyio give the loop itself
            self._soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon

    def run(self) -> None:
        """Do it, in a thread."""
        try:
            self._run()
        finally:
            self.over = True

    def _run(self) -> None:
        try:
            self._value = self._work()
        except BaseException as error:  # it is the caller's
            self._error = error
        with self._lock:
            self._ended, left = True, self._left
        if not left:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._soon(self.done.set)
        elif self._error is None and self._dispose is not None:
            with suppress(Exception):  # nobody is there to be told
                self._dispose(self._value)

    def leave(self) -> bool:
        """Wait for it no longer; whether it still goes on."""
        with self._lock:
            self._left = True
            return not self._ended

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value
