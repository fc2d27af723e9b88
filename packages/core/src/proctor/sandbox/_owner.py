"""For whom a sandbox is being made here: the run, and the sample."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from proctor.contracts import SandboxOwner
from proctor.schema import short_uuid

__all__ = ["id_outside_of_runs", "own_sandboxes", "sandbox_owner"]


class _For(NamedTuple):
    run_id: str
    task: str = ""
    sample: str = ""
    epoch: int = 0
    keep: bool = False


_for: ContextVar[_For | None] = ContextVar("proctor_sandbox_owner", default=None)
_outside = ""


def id_outside_of_runs() -> str:
    """The id of what is outside of any run in this process: a script, a test."""
    global _outside
    _outside = _outside or short_uuid()
    return _outside


@contextmanager
def own_sandboxes(run_id: str, task: str = "", sample: str = "", epoch: int = 0, keep: bool = False) -> Iterator[None]:
    """Say for whom the code inside makes sandboxes.

    Args:
        run_id: the run.
        task: the task; empty for what no task asked for.
        sample: id of the sample; empty for what several share.
        epoch: of the sample.
        keep: they stay when the run is over.
    """
    token = _for.set(_For(run_id, task, sample, epoch, keep))
    try:
        yield
    finally:
        _for.reset(token)


def sandbox_owner() -> SandboxOwner:
    """Whose the sandboxes are that are made here; a driver puts its ``labels()`` on all that it makes.

    In ``sample_init`` it is the sample's, in ``task_init`` the task's, elsewhere in a run the run's; outside of any
    run this process is the owner, with a run id of its own.
    """
    here = _for.get() or _For(id_outside_of_runs())
    return SandboxOwner.of_this_process(
        here.run_id, task=here.task, sample=here.sample, epoch=here.epoch, keep=here.keep
    )
