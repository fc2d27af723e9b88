"""The Python front door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from anyio import to_thread

from proctor.contracts import UsageError
from proctor.engine._load import TaskLike
from proctor.engine._run import RunResult, run, run_async
from proctor.log import read_eval_log
from proctor.model import Model
from proctor.schema import EvalLog, EvalOptions

__all__ = ["eval", "eval_async", "outside_a_loop"]


def eval(
    tasks: TaskLike | Sequence[TaskLike],
    model: str | Model | Sequence[str | Model] | None = None,
    **options: Unpack[EvalOptions],
) -> list[EvalLog]:
    """Evaluate tasks on models and return their logs, one a (task x model) pair, in plan order.

    Args:
        tasks: what to evaluate: paths (``file.py``, ``file.py@task``, a folder), ``@task`` functions, ``Task`` objects;
            one or a list of them, which may not be empty.
        model: ``provider/model``, or several.
        options: see ``EvalOptions``; the same as the options of ``proctor eval``.

    Raises:
        UsageError: for whatever is wrong before the first request.

    Example::

        [log] = eval("examples/hello.py", model="mock/model", limit=10)
        print(log.status, log.results.scores[0].metrics["accuracy"].value)
    """
    outside_a_loop("eval()", "write `await eval_async(...)`")
    return complete_logs(run(tasks, model, options))


async def eval_async(
    tasks: TaskLike | Sequence[TaskLike],
    model: str | Model | Sequence[str | Model] | None = None,
    **options: Unpack[EvalOptions],
) -> list[EvalLog]:
    """``eval()`` for code that is already in an event loop (a notebook, a server), on asyncio or trio."""
    return await to_thread.run_sync(complete_logs, await run_async(tasks, model, options))


def outside_a_loop(name: str, instead: str) -> None:
    """Refuse to start an event loop inside of one.

    Args:
        name: of the function that would.
        instead: what to do.

    Raises:
        UsageError: there is a loop.
    """
    import anyio

    try:
        anyio.get_current_task()
    except Exception:
        return
    raise UsageError(
        f"{name} starts an event loop, and one is running here: {instead}, and in a task file call it "
        'under `if __name__ == "__main__":` only'
    )


def complete_logs(result: RunResult) -> list[EvalLog]:
    """The logs with their samples, read back from where they were written."""
    return [read_eval_log(log.location) if log.location else log for log in result.logs]
