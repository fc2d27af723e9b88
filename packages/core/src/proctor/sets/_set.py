"""Run a set: what is complete is kept, what is not is gone on with, what fails is tried again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Unpack

from proctor.contracts import UsageError
from proctor.engine import Agenda, Retries, RunResult, TaskLike, Unit, eval_spec, outside_a_loop, run
from proctor.log import join_location, list_spills, write_log_dir_manifest
from proctor.model import Model
from proctor.schema import EvalLog, EvalSetOptions, EvalSpec, check_options, set_option_table
from proctor.sets._clean import delete_superseded
from proctor.sets._files import held_set, read_set_id, write_set
from proctor.sets._folder import scan_folder
from proctor.sets._plan import SetPlan, SetUnit, make_set_plan, refusal

__all__ = ["SetResult", "eval_set", "run_set"]

_ATTEMPTS = 10
_WAIT = 10.0  # seconds
_LONGEST = 600.0


@dataclass(frozen=True, slots=True)
class SetResult:
    """What a run of a set came to.

    Args:
        eval_set_id: ``None`` after a dry run in a folder without a set.
        plan: what was found before anything ran.
        logs: the header of the newest log of each unit, in plan order; none after a dry run.
        exit_code: 0 when every unit is complete.
        cleaned: locations of the logs that were deleted.
    """

    eval_set_id: str | None
    plan: SetPlan
    logs: list[EvalLog]
    exit_code: int
    cleaned: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """Whether every unit is complete; after a dry run, whether nothing would run."""
        return self.exit_code == 0 and (bool(self.logs) or self.plan.finished)


def eval_set(
    tasks: TaskLike | Sequence[TaskLike],
    *,
    model: str | Model | Sequence[str | Model] | None = None,
    **options: Unpack[EvalSetOptions],
) -> tuple[bool, list[EvalLog]]:
    """Evaluate tasks on models until all are complete; called again, it goes on where it stopped.

    Args:
        tasks: what to evaluate: paths (``file.py``, ``file.py@task``, a folder), ``@task`` functions, ``Task`` objects.
        model: ``provider/model``, or several.
        options: those of ``eval()``, and those of the set alone (see ``EvalSetOptions``). ``log_dir`` must be given: it
            holds one set.

    Returns:
        Whether all is complete, and the header of each unit's log, in plan order.

    Raises:
        UsageError: for whatever is wrong before the first request: also a changed configuration (unless
            ``on_change="new"``), and a set that another process is running.

    Example::

        success, logs = eval_set(["arithmetic.py", "quiz.py"], model=["mock/a", "mock/b"], log_dir="logs/set")
    """
    outside_a_loop("eval_set()", "call it in a thread (`await anyio.to_thread.run_sync(...)`)")
    result = run_set(tasks, model, options)
    return result.success, result.logs


def run_set(
    tasks: TaskLike | Sequence[TaskLike],
    model: str | Model | Sequence[str | Model] | None,
    options: Mapping[str, Any],
    *,
    show: Callable[[SetPlan], object] | None = None,
    last: Callable[[SetResult], int] | None = None,
) -> SetResult:
    """As ``eval_set``, for a command.

    Args:
        tasks: what to evaluate.
        model: the models.
        options: see ``EvalSetOptions``.
        show: is called on a thread with the plan, before anything runs or is refused.
        last: for a process that has nothing else to do: called, on a thread, when the set is over but tasks in its
            event loop do not end; the process ends then with the code that it returns.

    Raises:
        UsageError: as ``eval_set``.
    """
    try:
        check_options(options, eval_set=True)
    except ValueError as error:
        raise UsageError(str(error)) from error
    said = {name: value for name, value in options.items() if value is not None}
    own = {name: said.pop(name) for name in set_option_table() if name in said}
    if not said.get("log_dir"):
        raise UsageError("an eval set needs a folder of its own for its logs: give one with --log-dir (log_dir=)")
    if said.get("log_samples") is False:
        raise UsageError("an eval set goes on from the samples in its logs: leave --no-log-samples out")
    with ExitStack() as stack:
        current = _SetRun(said["log_dir"], own, show, stack, dry=bool(said.get("dry_run")))

        def at_once(ended: RunResult) -> int:
            finished = current.finish(ended.logs, ended.exit_code)
            stack.close()
            return last(finished) if last is not None else finished.exit_code

        result = run(tasks, model, said, current.agenda, last=at_once if last is not None else None)
        if current.dry:
            return SetResult(current.id, current.plan, [], 0)
        return current.finish(result.logs, result.exit_code)


class _SetRun:
    """A set on its way: what was found, and the lease of its folder, which ``stack`` gives back."""

    plan: SetPlan

    def __init__(
        self,
        log_dir: str,
        own: Mapping[str, Any],
        show: Callable[[SetPlan], object] | None,
        stack: ExitStack,
        *,
        dry: bool,
    ) -> None:
        self.dry = dry
        self.id: str | None = None
        self._log_dir = log_dir
        self._own = own
        self._show = show
        self._stack = stack

    def agenda(self, units: Sequence[Unit]) -> Agenda:
        """Look at the folder, say what is to be done, and refuse what must not be; on a thread of the run."""
        own = self._own
        if self.dry:
            self.id = read_set_id(self._log_dir)
        else:
            self.id = self._stack.enter_context(held_set(self._log_dir, own.get("eval_set_id")))
        self.plan = make_set_plan(units, scan_folder(self._log_dir))
        if self._show is not None:
            self._show(self.plan)
        if reason := _unsent(self._log_dir) or refusal(self.plan, new=own.get("on_change") == "new"):
            raise UsageError(reason)
        if self.dry:
            return Agenda()
        specs = {each.unit.id: _spec(each) for each in self.plan.units}
        write_set(self._log_dir, self.id or "", list(specs.values()))
        return Agenda(
            complete={each.unit.id: each.logs[0] for each in self.plan.of("complete")},
            prior={each.unit.id: each.prior for each in self.plan.of("resumes")},
            task_ids={unit: spec.task_id for unit, spec in specs.items()},
            retries=Retries(
                own.get("retry_attempts", _ATTEMPTS),
                own.get("retry_wait", _WAIT),
                own.get("retry_max_wait", _LONGEST),
            ),
            eval_set_id=self.id,
        )

    def finish(self, logs: list[EvalLog], exit_code: int) -> SetResult:
        """Delete what is superseded, when that was asked for, and write down what there is; blocks."""
        cleaned = delete_superseded(self._log_dir, logs) if self._own.get("clean") else ()
        try:
            write_log_dir_manifest(self._log_dir)
        except OSError as error:  # the logs are there, which is what counts
            warnings.warn(f"logs.json could not be written to {self._log_dir}: {error}", stacklevel=2)
        return SetResult(self.id, self.plan, logs, exit_code, tuple(cleaned))


def _unsent(log_dir: str) -> str | None:
    """Why a set must wait for logs that its store could not take; ``None`` when there are none on this machine."""
    folder = join_location(log_dir, "")
    waiting = [spill.path for spill in list_spills() if spill.location.startswith(folder)]
    if not waiting:
        return None
    named = waiting[0] if len(waiting) == 1 else f"{waiting[0]} and {len(waiting) - 1} more"
    return (
        f"logs of {log_dir} are still on this machine ({named}), and the samples in them would be paid for again: send "
        "them with `proctor log push --all` first"
    )


def _spec(each: SetUnit) -> EvalSpec:
    """What is evaluated, with the task id that earlier attempts have."""
    if each.state in ("complete", "resumes"):
        return each.logs[0].eval
    return eval_spec(each.unit, "", None)
