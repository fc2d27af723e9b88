"""The event loop of a run, and how it is left when some of its tasks can't be ended."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

import anyio

from proctor.concurrency import left_behind
from proctor.contracts import UsageError
from proctor.engine._emergency import STOP_TIMEOUT, leave_unless_ended, patience_with_loop
from proctor.engine._options import RunOptions
from proctor.engine._tuning import tuned_interpreter

__all__ = ["in_loop", "tell_over"]

T = TypeVar("T")

_AGAIN = 0.5  # seconds until a loop that was stopped and goes on is stopped again
_kept: list[Any] = []  # tasks that did not end: collected as garbage they would run once more

_over: ContextVar[Callable[[Any], None] | None] = ContextVar("proctor_run_over", default=None)


def in_loop(
    options: RunOptions, function: Callable[..., Awaitable[T]], *args: Any, last: Callable[[T], int] | None = None
) -> T:
    """Call ``function`` in an event loop of its own, as ``options`` want it.

    Args:
        options: of the run.
        function: it calls ``tell_over`` when there is nothing left to wait for.
        args: its arguments.
        last: for a process that has nothing else to do: called, on a thread, when all is over but tasks in the loop do
            not end; the process ends then with the code that it returns.

    Raises:
        UsageError: the back-end is not installed.
        RuntimeError: something in the run called ``sys.exit()`` where nobody expects it.
    """
    settings: dict[str, Any] = {}
    if options.async_backend == "asyncio" and sys.platform != "win32":
        settings["use_uvloop"] = _installed("uvloop")
    elif options.async_backend == "trio" and not _installed("trio"):
        raise UsageError("--async-backend trio needs the trio package: pip install 'proctor-core[trio]'")
    timers: list[threading.Timer] = []
    results: list[T] = []
    stopped: list[Any] = []

    def over(result: T) -> None:
        results.append(result)
        if last is not None:
            timers.append(leave_unless_ended(partial(last, result)))
        elif options.async_backend == "asyncio":
            limit = STOP_TIMEOUT if options.stop_timeout is None else options.stop_timeout
            _stop_unless_ended(min(limit, patience_with_loop()), stopped)

    token = _over.set(over)
    try:
        with tuned_interpreter():
            return anyio.run(function, *args, backend=options.async_backend, backend_options=settings)
    except (SystemExit, BaseExceptionGroup) as error:
        # Somebody's sys.exit() that no room has caught: code 0 would say that all is done.
        if (left := _exit_in(error)) is None:
            raise
        where = traceback.extract_tb(left.__traceback__)[-1]
        raise RuntimeError(
            f"{where.name} in {where.filename}, line {where.lineno}, ended the run (SystemExit {left.code!r})"
        ) from error
    except Exception as error:
        # Tasks of a group whose own task was left behind: trio has no way to end without them but this.
        if results and left_behind() and type(error).__name__ == "TrioInternalError":
            return results[0]
        if results and stopped and isinstance(error, RuntimeError):  # its complaint of being stopped
            return results[0]
        raise
    finally:
        _over.reset(token)
        for timer in timers:
            timer.cancel()


def _exit_in(error: BaseException) -> SystemExit | None:
    if isinstance(error, BaseExceptionGroup):
        return next((found for each in error.exceptions if (found := _exit_in(each)) is not None), None)
    return error if isinstance(error, SystemExit) else None


def _stop_unless_ended(seconds: float, stopped: list[Any]) -> None:
    """Stop the loop of asyncio in a while: its end waits for all its tasks, and some swallow their cancellation.

    Args:
        seconds: that the tasks have.
        stopped: takes those that did not end.
    """
    import asyncio

    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopped[:] = asyncio.all_tasks(loop)
        for task in stopped:
            task._log_destroy_pending = False
        _kept.extend(stopped)
        loop.call_later(_AGAIN, stop)  # what was stopped may be the run itself; the end of the loop comes after that
        loop.stop()

    loop.call_later(seconds, stop)


def tell_over(result: Any) -> None:
    """All is done and written; nothing is left but the end of the event loop."""
    over = _over.get()
    if over is not None:
        over(result)


def _installed(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None
