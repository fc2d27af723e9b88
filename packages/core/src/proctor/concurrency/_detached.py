"""Work that nobody has to wait for: it is told to stop, and what doesn't is left where it stands.

A task that swallows its cancellation, or waits for a thread that never returns, can't be ended by any event loop. So
the coroutine is driven by hand: one that is abandoned is simply never resumed. Its task ends (asyncio) or is parked
until the run is over (trio, where whatever it waits for may still wake it).
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from proctor.plugins import running_backend

__all__ = ["Detached", "bounded", "detached_tasks", "left_behind", "with_detached_tasks"]

T = TypeVar("T")

_GRACE = 5.0
"""Seconds that what ``bounded`` has cancelled may go on."""

_left: list[Coroutine[Any, Any, Any]] = []
"""What was abandoned: collected as garbage it would run once more, to say that it ignores that, too."""


class _Tasks:
    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self.live: dict[Detached[Any], None] = {}
        self.abandoned: list[Detached[Any]] = []

    def start(self, of: Detached[Any]) -> None:
        self.live[of] = None
        # A context of its own for the task, too: groups inside start others in copies of the one that they see.
        context = of.context.copy()
        if _trio() is not None:
            context.run(self._group.start_soon, of.main)
        else:
            # Not in the group: its tasks must leave the scopes that they entered before they end.
            import asyncio

            asyncio.get_running_loop().create_task(of.main(), context=context)

    async def end(self) -> None:
        """Cancel what still goes on, and wait for it."""
        for each in list(self.live):
            each.scope.cancel()
        for each in self.abandoned:
            each.release()
        with anyio.CancelScope(shield=True):
            for each in list(self.live):
                await each.done.wait()


_tasks: ContextVar[_Tasks | None] = ContextVar("proctor_detached_tasks", default=None)


@asynccontextmanager
async def detached_tasks() -> AsyncIterator[None]:
    """Where detached work of the code inside lives; at the end, what still goes on is cancelled."""
    failure: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            tasks = _Tasks(group)
            token = _tasks.set(tasks)
            try:
                yield
            except BaseException as error:  # raised below, as it is and not in a group
                failure = error
            finally:
                _tasks.reset(token)
                await tasks.end()
    except BaseExceptionGroup as failed:
        # The tasks keep what they raise. This is the loop's complaint of nurseries that abandoned work left open.
        others = failed.split(lambda error: isinstance(error, RuntimeError) and "corrupted" in str(error))[1]
        if others is not None:
            raise others from None
    if failure is not None:
        raise failure


@asynccontextmanager
async def with_detached_tasks() -> AsyncIterator[None]:
    """``detached_tasks`` for code that may be outside of a run (a script, a test); inside of one, that of the run."""
    if _tasks.get() is not None:
        yield
        return
    async with detached_tasks():
        yield


def left_behind() -> bool:
    """Whether anything was abandoned in this process: a thread of it may keep the interpreter from ending."""
    return bool(_left)


async def bounded(work: Callable[[], Coroutine[Any, Any, object]], seconds: float) -> bool:
    """Await ``work``, for so long and no longer, also where the caller was cancelled.

    Args:
        work: makes the coroutine.
        seconds: after which it is cancelled; ``_GRACE`` s later it is left where it stands.
    Returns:
        Whether it came to its end.

    Raises:
        Exception: what it raised.
    """
    if _tasks.get() is None:  # outside a run (a script, a test)
        with anyio.move_on_after(seconds, shield=True) as scope:
            await work()
        return not scope.cancelled_caught
    task = Detached(work)
    with anyio.CancelScope(shield=True):
        ended = await task.wait(seconds)
    if not ended:
        await task.stop(_GRACE)
        return False
    task.result()
    return True


class Detached(Generic[T]):
    """``work`` in a task of its own, which starts at once.

    Args:
        work: makes the coroutine.
        context: the context variables that it runs in; by default a copy of the caller's.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]], context: Context | None = None) -> None:
        tasks = _tasks.get()
        if tasks is None:
            raise RuntimeError("detached work needs detached_tasks() around it")
        self.context = copy_context() if context is None else context
        self.scope = anyio.CancelScope()
        self.done = anyio.Event()
        self.abandoned = False
        self._tasks = tasks
        self._released = False
        self._result: T
        self._error: BaseException | None = None
        self._on_end: Callable[[Detached[T]], None] = lambda task: None
        self._task: Any = None
        self._body = self.context.run(self._run, work)
        tasks.start(self)

    async def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        with self.scope:
            try:
                self._result = await work()
            except BaseException as error:  # whoever waits for it is the one to know
                self._error = error
                if isinstance(error, anyio.get_cancelled_exc_class()):
                    raise

    async def main(self) -> None:
        """What its task runs."""
        self._task = _current_task()
        try:
            await _Driven(self)
        finally:
            if not self.abandoned:
                self._tasks.live.pop(self, None)
                self.done.set()
                self._on_end(self)

    def on_end(self, call: Callable[[Detached[T]], None]) -> None:
        """Call ``call`` when it ends by itself."""
        self._on_end = call

    async def wait(self, seconds: float) -> bool:
        """Wait so many seconds at most; whether it has ended by then."""
        with anyio.move_on_after(seconds):
            await self.done.wait()
        return self.done.is_set()

    async def stop(self, grace: float) -> bool:
        """Cancel it and, after ``grace`` seconds, leave it where it stands.

        Returns:
            Whether it ended by itself.
        """
        self.scope.cancel()
        with anyio.CancelScope(shield=True):
            ended = await self.wait(grace)
        if not ended:
            self.abandon()
        return ended

    def result(self) -> T:
        """What it returned.

        Raises:
            BaseException: what it raised.
        """
        if self._error is not None:
            raise self._error
        return self._result

    @property
    def coroutine(self) -> object:
        """What it runs, to be looked at."""
        return self._body

    @property
    def failed(self) -> BaseException | None:
        """What it raised, its cancellation included."""
        return self._error

    def abandon(self) -> None:
        """Never resume it again, whatever happens to it."""
        if self.abandoned or self.done.is_set():
            return
        self.abandoned = True
        self._tasks.live.pop(self, None)
        self._tasks.abandoned.append(self)
        _left.append(self._body)
        if self._task is not None and _trio() is None:
            self._task.cancel()
        self.done.set()

    def release(self) -> None:
        """At the end of the run: let the task end that the coroutine was abandoned in.

        On trio, where it may not be woken before: whatever it waits for would wake it a second time.
        """
        self._released = True
        trio = _trio()
        if self._task is not None and trio is not None:
            with suppress(AssertionError):  # it is about to be resumed anyway
                trio.lowlevel.reschedule(self._task)


class _Driven:
    """Awaits the coroutine of a ``Detached`` until that is abandoned."""

    __slots__ = ("_of",)

    def __init__(self, of: Detached[Any]) -> None:
        self._of = of

    def __await__(self) -> Generator[Any, Any, None]:
        of, run, body = self._of, self._of.context.run, self._of._body
        error: BaseException | None = None
        value = None
        try:
            while not of.abandoned:
                wanted = run(body.send, value) if error is None else run(body.throw, error)
                try:
                    value, error = (yield wanted), None
                except GeneratorExit:
                    _left.append(body)
                    raise
                except BaseException as raised:
                    error = raised
        except StopIteration:
            return
        yield from _parked(of)


def _parked(of: Detached[Any]) -> Generator[Any, Any, None]:
    """On trio, wait until the run is over; what the coroutine waited for may wake the task meanwhile."""
    trio = _trio()
    if trio is None:
        return
    while not of._released:
        with suppress(BaseException):
            yield from trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED).__await__()


def _current_task() -> Any:
    if (trio := _trio()) is not None:
        return trio.lowlevel.current_task()
    import asyncio

    return asyncio.current_task()


def _trio() -> Any:
    """The module, if it runs the loop here."""
    return sys.modules["trio"] if "trio" in sys.modules and running_backend() == "trio" else None
