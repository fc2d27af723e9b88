"""What a task's own asyncio code runs into on trio, in words that say what to write instead."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

from proctor.plugins import running_backend

__all__ = ["AsyncioOnlyError", "explained"]

_TASK_GROUP = "anyio.create_task_group()"
_INSTEAD = {
    "sleep": "anyio.sleep()",
    "gather": "proctor.util.collect()",
    "create_task": _TASK_GROUP,
    "ensure_future": _TASK_GROUP,
    "TaskGroup": _TASK_GROUP,
    "wait": _TASK_GROUP,
    "as_completed": _TASK_GROUP,
    "to_thread": "anyio.to_thread.run_sync()",
    "run_in_executor": "anyio.to_thread.run_sync()",
    "wait_for": "anyio.fail_after()",
    "timeout": "anyio.fail_after()",
    "Lock": "anyio.Lock",
    "Semaphore": "anyio.Semaphore",
    "Event": "anyio.Event",
    "Condition": "anyio.Condition",
    "Queue": "anyio.create_memory_object_stream()",
    "create_subprocess_exec": "proctor.util.subprocess()",
    "create_subprocess_shell": "proctor.util.subprocess()",
    "open_connection": "anyio.connect_tcp()",
}
_NO_LOOP = ("no running event loop", "There is no current event loop")
_FOREIGN = "trio.run received unrecognized yield message"


class AsyncioOnlyError(RuntimeError):
    """Code of a task, or a library that it calls, needs asyncio, and the run uses trio."""


def explained(error: BaseException) -> BaseException:
    """``error``; or, where asyncio code on trio made it, one that says what to write, with ``error`` as its cause."""
    if running_backend() != "trio":
        return error
    culprit = next((leaf for leaf in _leaves(error) if _is_foreign(leaf)), None)
    if culprit is None:
        return error
    what, place = _call(culprit)
    instead = _INSTEAD.get(what.rpartition(".")[2])
    advice = f"write {instead}" if instead else "write what anyio has for it"
    said = AsyncioOnlyError(
        f"{what}{place} works on asyncio only, and this run uses trio: {advice}, which runs on both, or run with "
        f"--async-backend asyncio"
    )
    said.__cause__ = error
    return said


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _is_foreign(error: BaseException) -> bool:
    if isinstance(error, TypeError):
        return str(error).startswith(_FOREIGN)
    if isinstance(error, RuntimeError) and str(error).startswith(_NO_LOOP):
        return True
    # Locks and queues ask the loop that is not there for a future.
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return isinstance(error, AttributeError) and last is not None and _is_asyncio(last.tb_frame.f_globals)


def _is_asyncio(names: dict[str, object]) -> bool:
    return str(names.get("__name__", "")).partition(".")[0] == "asyncio"


def _call(error: BaseException) -> tuple[str, str]:
    """The call into asyncio, such as ``asyncio.sleep``, and where it stands: the last line that is not asyncio's."""
    caller = None
    inside = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _is_asyncio(frame.f_globals):
            inside = inside or frame.f_code.co_name
        elif not _is_ours(frame.f_globals):
            caller, inside = traceback.FrameSummary(frame.f_code.co_filename, line, frame.f_code.co_name), ""
    if caller is None:
        return "this code", ""
    named = re.search(r"\b(?:asyncio|loop)\.([\w.]+)", caller.line or "")
    name = named.group(1) if named else inside
    return f"asyncio.{name}" if name.isidentifier() else "asyncio code", f" ({caller.filename}, line {caller.lineno})"


def _is_ours(names: dict[str, object]) -> bool:
    return str(names.get("__name__", "")).partition(".")[0] in ("trio", "anyio", "outcome", "proctor")
