"""A run from options to logs: plan, gates, units, screen, observers, signals."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import anyio
from anyio import to_thread

from proctor import plugins
from proctor.concurrency import (
    Gate,
    detached_tasks,
    run_gates,
    tend_gates,
)
from proctor.contracts import RunEnd, RunRow, RunStart, UnitInfo, UsageError
from proctor.display import stopped_text, unit_from_log
from proctor.engine._agenda import Agenda, MakeAgenda
from proctor.engine._checks import check_log_dir, check_units
from proctor.engine._emergency import Emergency
from proctor.engine._errors import eval_error, exit_code, stopped_by
from proctor.engine._estimate import UnitEstimate, pilot, unit_estimate
from proctor.engine._load import TaskLike, find_tasks
from proctor.engine._loop import in_loop, tell_over
from proctor.engine._observe import Observers
from proctor.engine._options import RunOptions, connection_policy, resolve_options
from proctor.engine._plan import make_plan, resolve_models
from proctor.engine._progress import RunProgress
from proctor.engine._run_unit import UnitRun
from proctor.engine._sandboxes import check_sandboxes, kept_text
from proctor.engine._schedule import run_units
from proctor.engine._screen import Screen, make_display
from proctor.engine._signals import key_signals, stop_signals
from proctor.engine._spec import revision
from proctor.engine._status import RunStatus
from proctor.engine._unit import Unit
from proctor.engine._waits import sample_snapshots
from proctor.limits import RunBudget, use_budget
from proctor.log import index_eval_log, now_iso_seconds
from proctor.model import Model, close_models, run_models, use_prices
from proctor.monitor import (
    LoopWatch,
    Place,
    settled,
    use_loop_watch,
)
from proctor.sandbox import begin_reaping, cleanup_sandboxes, configure_sandboxes, end_reaping, kept_sandboxes
from proctor.schema import EvalLog, redact_text, short_uuid

__all__ = ["RunResult", "of_this_loop", "run", "run_async", "run_planned"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to: the headers of its logs in plan order, the exit code, and what was planned."""

    logs: list[EvalLog]
    exit_code: int
    units: tuple[Unit, ...]
    estimates: tuple[UnitEstimate, ...] = ()
    """With ``estimate``: what the whole of each unit would take."""


def run(
    tasks: TaskLike | Sequence[TaskLike],
    model: str | Model | Sequence[str | Model] | None,
    options: Mapping[str, Any],
    agenda: MakeAgenda | None = None,
    last: Callable[[RunResult], int] | None = None,
) -> RunResult:
    """Evaluate, in an event loop of its own.

    Args:
        tasks: what to evaluate.
        model: the models.
        options: see ``EvalOptions``.
        agenda: decides what is done with the units that were planned.
        last: for a process that has nothing else to do: called, on a thread, when the run is over but tasks in its
            event loop do not end; the process ends then with the code that it returns.

    Raises:
        UsageError: for whatever is wrong before the first request.
    """
    resolved = resolve_options(options)
    return in_loop(resolved, run_resolved, tasks, model, resolved, agenda, last=last)


async def run_async(
    tasks: TaskLike | Sequence[TaskLike], model: str | Model | Sequence[str | Model] | None, options: Mapping[str, Any]
) -> RunResult:
    """Evaluate in the event loop that is running.

    Raises:
        UsageError: when the options ask for another back-end than the loop's, or for whatever else is wrong.
    """
    return await run_resolved(tasks, model, resolve_options(of_this_loop(options)))


def of_this_loop(options: Mapping[str, Any]) -> dict[str, Any]:
    """``options`` with the back-end of the loop that is running.

    Raises:
        UsageError: when they ask for another.
    """
    asked, running = options.get("async_backend"), plugins.running_backend() or "asyncio"
    if asked not in (None, running):
        raise UsageError(
            f"async_backend={asked!r} was asked for inside of a loop of {running}, which is what this run uses then: "
            f"leave it out, or start the loop with anyio.run(..., backend={asked!r})"
        )
    return {**options, "async_backend": running}


async def run_resolved(
    tasks: TaskLike | Sequence[TaskLike],
    model: str | Model | Sequence[str | Model] | None,
    options: RunOptions,
    agenda: MakeAgenda | None = None,
) -> RunResult:
    """Evaluate with options that are checked."""

    def plan() -> list[Unit]:
        models = resolve_models(model, options)
        return make_plan(find_tasks(tasks), models, options)

    return await run_planned(plan, options, agenda)


async def run_planned(plan: Callable[[], list[Unit]], options: RunOptions, agenda: MakeAgenda | None) -> RunResult:
    """Evaluate the units that ``plan`` makes, once plugins and gates are there."""
    plugins.configure(options.plugins, options.disable_plugins)
    plugins.startup()
    run_id = short_uuid()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(detached_tasks())
        stack.enter_context(run_gates(options.max_subprocesses, connection_policy(options)))
        stack.enter_context(run_models())
        stack.enter_context(use_prices(options.prices))
        stack.enter_context(use_budget(RunBudget(options.max_tokens_total, options.max_cost)))
        stack.enter_context(configure_sandboxes(options.max_sandboxes, run_id, keep=not options.sandbox_cleanup))
        result: RunResult | None = None
        try:
            units = whole = plan()
            if options.estimate:
                if agenda is not None:
                    raise UsageError("estimate is for new evaluations: `proctor eval TASK --estimate` makes one")
                units = [pilot(unit, options.estimate) for unit in whole]
            check_units(units, options)
            await check_sandboxes(units)
            observers = Observers(options.observers, options.async_backend)
            check_log_dir(options.log_dir, dry=options.dry_run)
            display = make_display(options.display, options.async_backend)
            made = Agenda() if agenda is None else await to_thread.run_sync(agenda, units)
            if options.dry_run:
                return RunResult([], 0, tuple(units))
            for index in (index for logs in made.prior.values() for index in logs):
                stack.callback(index.release)
                await to_thread.run_sync(index.hold)
            observers.start()
            current = _Run(run_id, units, options, observers, made)
            stack.callback(current.emergency.close)
            screen = Screen(display, current.progress.snapshot, lambda: sample_snapshots(current.progress.units))
            begin_reaping(screen.message)
            result = await current.run(screen)
            if options.estimate:
                result = replace(result, estimates=await to_thread.run_sync(_estimates, whole, current.logs))
            return result
        finally:
            with anyio.CancelScope(shield=True):
                await cleanup_sandboxes(options.sandbox_cleanup)
                await close_models()
            if result is not None:
                tell_over(result)


def _estimates(units: Sequence[Unit], logs: Mapping[int, EvalLog]) -> tuple[UnitEstimate, ...]:
    # A unit that a signal came before has no log.
    return tuple(unit_estimate(units[index], log) for index, log in sorted(logs.items()) if log.location)


class _Run:
    def __init__(
        self, run_id: str, units: Sequence[Unit], options: RunOptions, observers: Observers, agenda: Agenda
    ) -> None:
        self.units = units
        self.options = options
        self.agenda = agenda
        self.observers = observers
        self.run_id = run_id
        self.progress = RunProgress(units)
        self.logs: dict[int, EvalLog] = {}
        self.failed: Counter[int] = Counter()
        self.prior = [list(agenda.prior.get(unit.id, ())) for unit in units]
        self._take_complete()
        self.signal: int | None = None
        self.spilled = False
        self.tasks = Gate("tasks", options.max_tasks or len({unit.model.name for unit in units}) or 1)
        self.watch = LoopWatch(self._stood_still)
        self.running: dict[UnitRun, None] = {}
        self.emergency = Emergency(self.watch, lambda: settled(self.running), self._last, options.stop_timeout)
        self.status = RunStatus(self.run_id, self.progress, self.tasks, self.watch, options, options.async_backend)

    async def run(self, screen: Screen) -> RunResult:
        self._screen = screen
        screen.start()
        self.status.start()
        self.emergency.start()
        code = 1
        try:
            self._announce()
            stop = anyio.CancelScope()
            try:
                with (
                    stop_signals(self._signalled, stop.cancel, self._unfinished),
                    key_signals(self._screen.toggle_samples),
                    stop,
                ):
                    await self._all_units()
            except BaseExceptionGroup:
                # What a cancelled sample raised on its way out is in its record; the signal is what ended the run.
                if self.signal is None:
                    raise
            await self._leave_sandboxes()
            logs = [self.logs[index] for index in sorted(self.logs)]
            code = 128 + self.signal if self.signal else exit_code(logs) or (1 if self.spilled else 0)
            return RunResult(logs, code, tuple(self.units))
        finally:
            self.observers.tell(RunEnd(code, tuple(self._rows())))
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._close, code)

    async def _leave_sandboxes(self) -> None:
        """Wait for what is taken away of other runs; say how to get into what this one keeps."""
        await (end_reaping() if self.signal is None else end_reaping(0))
        if not self.options.sandbox_cleanup and (kept := await kept_sandboxes()):
            self._screen.message(kept_text(kept, self.run_id))

    def _close(self, code: int) -> None:
        self.status.close()
        self._screen.finish(code)
        self.observers.close(hurry=self.signal is not None)

    def _last(self, code: int, text: str) -> None:
        """On a thread, when the process has to end as it is."""
        self._screen.message(f"Ending at once: {text}. Logs have what was recorded.", "error")
        self.status.close()
        self._screen.finish(code)

    async def _all_units(self) -> None:
        self._revision = await to_thread.run_sync(revision, os.getcwd())
        with use_loop_watch(self.watch):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(tend_gates)
                tasks.start_soon(self.watch.beat, self.status.beat)
                await run_units(self.units, self.tasks, self._one_unit)
                tasks.cancel_scope.cancel()

    def _take_complete(self) -> None:
        """Show the units that other runs have completed as they would stand at the end of this one."""
        for index, unit in enumerate(self.units):
            if (log := self.agenda.complete.get(unit.id)) is not None:
                self.logs[index] = log
                self.progress.units[index].take_over(log)

    async def _one_unit(self, index: int) -> float | None:
        """Run a unit; how long it rests before the next attempt, in seconds, when there is one."""
        if self.units[index].id in self.agenda.complete:
            return None
        if self.failed[index]:
            self.progress.begin_anew(index)
        await self._attempt(index)
        if self.logs[index].status != "error":
            return None
        self.failed[index] += 1
        rest = self.agenda.retries.rest(self.failed[index])
        if rest is None or not await self._keep(index):
            return None
        self._tell_retry(index, rest)
        return rest

    async def _keep(self, index: int) -> bool:
        """Have the next attempt at a unit take over what this one has done; false when that can't be known."""
        location = self.progress.units[index].location
        if location:
            try:
                self.prior[index].append(await to_thread.run_sync(index_eval_log, location))
            except Exception as error:
                # Its samples would be paid for twice: better that somebody looks at it first.
                unit = self.units[index]
                self._screen.message(
                    f"{unit.title} is not tried again: what it has done can't be read from "
                    f"{location} ({redact_text(str(error))})",
                    "error",
                )
                return False
        return True

    async def _attempt(self, index: int) -> None:
        unit = UnitRun(
            self.units[index],
            self.run_id,
            self.progress.units[index],
            self.observers,
            self._revision,
            task_id=self.agenda.task_ids.get(self.units[index].id),
            eval_set_id=self.agenda.eval_set_id,
            on_spill=self._spilled,
            prior=self.prior[index],
        )
        self.running[unit] = None
        try:
            self.logs[index] = log = await unit.run()
            if why := stopped_by(log):
                again = "The same eval set" if self.agenda.eval_set_id else "`proctor eval-retry`"
                self._screen.message(
                    f"{unit.unit.title}: the budget of the run is spent ({why}), so no further sample was started. "
                    f"{again} goes on from the log",
                    "warning",
                )
        except Exception as error:
            # The log itself could not be written: this unit is lost, the others go on.
            self._lost(index, unit, error)
        except BaseException:
            if unit.log is not None:
                self.logs[index] = unit.log
            raise
        finally:
            del self.running[unit]

    def _tell_retry(self, index: int, rest: float) -> None:
        unit, log = self.units[index], self.logs[index]
        why = f": {' '.join(log.error.message.split())}" if log.error else ""
        attempt = f"attempt {self.failed[index] + 1} of {self.agenda.retries.attempts + 1}"
        when = f"in {rest:.0f} s" if rest >= 1 else "at once"
        self._screen.message(f"{unit.title} failed{why}. {attempt.capitalize()} {when}.", "warning")

    def _lost(self, index: int, unit: UnitRun, error: Exception) -> None:
        what = redact_text(f"{type(error).__name__}: {error}")
        progress = self.progress.units[index]
        progress.status, progress.error = "error", what
        text = f"{unit.unit.title}: {what}"
        if progress.location:
            text += f". What was written is in {progress.location}: `proctor log recover {progress.location}`"
        self._screen.message(text, "error")
        self.logs[index] = EvalLog(status="error", eval=unit.spec, error=eval_error(error))

    def _spilled(self, location: str, path: str, reason: str) -> None:
        """On a writer's thread: a store is lost, and its log goes on here."""
        self.spilled = True
        self._screen.message(
            f"{location} can't be written any more: {reason}. The run goes on, its log is {path} now. When the "
            "store is back, `proctor log push` sends it",
            "error",
        )

    def _stood_still(self, place: Place, seconds: float, goes_on: bool) -> None:
        """On the watchdog's thread: the code in ``place`` kept everything else waiting."""
        so_far = " so far" if goes_on else ""
        self._screen.message(
            f"the event loop stood still for {seconds:.1f} s{so_far} in {place}. Nothing else could run meanwhile: "
            "call what blocks in a thread (await anyio.to_thread.run_sync(...)), and commands by subprocess()",
            "warning",
        )

    def _signalled(self, number: int) -> None:
        self.signal = number
        self.emergency.signalled(number)
        for unit in self.progress.units:
            unit.patience.hurry()
        self._screen.message(
            "Stopping: running samples are recorded as cancelled. The same again stops at once.", "warning"
        )

    def _unfinished(self) -> str:
        """What to say when the process ends with logs that are not finished."""
        open_logs = [unit.location for unit in self.progress.units if unit.active and unit.location]
        return stopped_text(open_logs, in_set=self.agenda.eval_set_id is not None)

    def _announce(self) -> None:
        infos = tuple(UnitInfo(unit.id, unit.name, unit.model.name, unit.total) for unit in self.units)
        self.observers.tell(
            RunStart(self.run_id, infos, self.options.log_dir, now_iso_seconds(), self.options.metadata)
        )

    def _rows(self) -> list[RunRow]:
        rows = []
        for index, log in sorted(self.logs.items()):
            shown = unit_from_log(log)
            first = next(iter(shown.results), None)
            scores = log.results.scores if log.results else []
            rows.append(
                RunRow(
                    unit=self.units[index].id,
                    task=log.eval.task,
                    model=log.eval.model,
                    status=log.status,
                    metrics={name: metric.value for score in scores for name, metric in score.metrics.items()},
                    scored=(first.scored or 0) if first else 0,
                    total=(shown.total if first is None or first.total is None else first.total) or 0,
                    location=log.location,
                    partial=shown.partial,
                    outcomes=dict(shown.outcomes),
                )
            )
        return rows
