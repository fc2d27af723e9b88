"""Going on with evaluations from their logs: ``eval_retry()``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack
from warnings import warn

from anyio import to_thread

from proctor.contracts import UsageError
from proctor.engine._agenda import Agenda
from proctor.engine._eval import complete_logs, outside_a_loop
from proctor.engine._identity import (
    IDENTITY_VERSION,
    identity_changes,
    logged_ingredients,
    logged_options,
    logged_unit,
    without_scored_copies,
)
from proctor.engine._label import labelled
from proctor.engine._loop import in_loop
from proctor.engine._options import RunOptions, resolve_options
from proctor.engine._restore import planned_again
from proctor.engine._reuse import ResumePlan, resume_plan
from proctor.engine._run import RunResult, of_this_loop, run_planned
from proctor.engine._unit import Unit
from proctor.log import BadLogError, LogIndex, attempts_of, index_eval_log
from proctor.model import ModelPrices
from proctor.schema import EvalLog, EvalOptions, own_metadata, retry_keys

__all__ = ["Resumed", "eval_retry", "eval_retry_async", "retry"]

_BUDGETS = frozenset({"max_cost", "max_tokens_total"})
_CHANGES = 12  # that are listed


@dataclass(frozen=True, slots=True)
class Resumed:
    """An evaluation that is resumed.

    Args:
        unit: as it is planned today.
        logs: its attempts so far, oldest first; none when it is run as a new one.
        plan: which samples are run, and why.
        complete: the header of the log that has all of it, when there is nothing to do.
    """

    unit: Unit
    logs: Sequence[LogIndex]
    plan: ResumePlan
    complete: EvalLog | None


def eval_retry(
    logs: str | Path | EvalLog | Sequence[str | Path | EvalLog], *, force: bool = False, **options: Unpack[EvalOptions]
) -> list[EvalLog]:
    """Go on with the evaluations in ``logs``: samples that are done are kept, the others are run.

    Each gets a new log, which has all samples; the old ones stay. Task, model and all that decides what is asked come
    from the log, and an evaluation whose task has changed since is refused.

    Args:
        logs: locations, or logs that were read; of runs that failed, were cancelled or died.
        force: run an evaluation that has changed, or whose log holds no samples, as a new one, with all samples.
        options: how it is run (parallelism, errors, log, display); see ``EvalOptions``.

    Raises:
        UsageError: for whatever is wrong before the first request.
    """
    outside_a_loop("eval_retry()", "write `await eval_retry_async(...)`")
    return complete_logs(retry(_locations(logs), options, force=force))


async def eval_retry_async(
    logs: str | Path | EvalLog | Sequence[str | Path | EvalLog], *, force: bool = False, **options: Unpack[EvalOptions]
) -> list[EvalLog]:
    """``eval_retry()`` for code that is already in an event loop."""
    job = _Retry(_locations(logs), of_this_loop(options), force, None)
    await to_thread.run_sync(job.read)
    try:
        return await to_thread.run_sync(complete_logs, await job.run())
    finally:
        await to_thread.run_sync(job.release)


def retry(
    logs: Sequence[str],
    options: Mapping[str, Any],
    *,
    force: bool = False,
    tell: Callable[[Sequence[Resumed]], None] | None = None,
    last: Callable[[RunResult], int] | None = None,
) -> RunResult:
    """Resume, in an event loop of its own.

    Args:
        logs: their locations.
        options: see ``EvalOptions``.
        force: run an evaluation that has changed as a new one.
        tell: called with what will be done before anything is sent, on a thread.
        last: as ``run`` has it.

    Raises:
        UsageError: for whatever is wrong before the first request.
    """
    job = _Retry(logs, options, force, tell)

    def at_once(result: RunResult) -> int:
        job.release()
        return last(result) if last is not None else result.exit_code

    job.read()
    try:
        return in_loop(job.options, job.run, last=at_once if last is not None else None)
    finally:
        job.release()


def _locations(logs: str | Path | EvalLog | Sequence[str | Path | EvalLog]) -> list[str]:
    many = [logs] if isinstance(logs, (str, Path, EvalLog)) else logs
    return [log.location if isinstance(log, EvalLog) else str(log) for log in many]


class _Retry:
    """One call: reads and holds the logs first, since of two who resume one log the second must be refused."""

    def __init__(
        self,
        logs: Sequence[str],
        options: Mapping[str, Any],
        force: bool,
        tell: Callable[[Sequence[Resumed]], None] | None,
    ) -> None:
        if not logs:
            raise UsageError("no log was named: give the log of a run that failed, was cancelled or died.")
        said = {name: value for name, value in options.items() if value is not None}
        if wrong := sorted(said.keys() - retry_keys()):
            raise UsageError(
                f"{', '.join(wrong)} can't be given to a resume: the log says what is asked. Evaluate anew for that."
            )
        self.given = frozenset(said)
        self.options: RunOptions = resolve_options(said)
        if not self.options.log_samples:
            raise UsageError("a resume needs a log with samples: leave --no-log-samples out.")
        self._names = logs
        self._force = force
        self._tell = tell
        self._families: list[list[LogIndex]] = []
        self._held: list[LogIndex] = []
        self._copies: set[str] = set()

    def read(self) -> None:
        """Index the logs and the other attempts at their evaluations, and hold them; blocks."""
        try:
            for name in dict.fromkeys(self._names):
                known = (index.location for family in self._families for index in family)
                if name not in self._copies and name not in known:
                    self._families.append(self._family(name))
        except BaseException:
            self.release()
            raise
        if "log_dir" not in self.given:
            folder = self._names[0].rpartition("/")[0] or "."
            self.options = replace(self.options, log_dir=folder)
        if "plugins" not in self.given:
            self.options = replace(self.options, plugins=self._named("plugins"))
        if "disable_plugins" not in self.given:
            self.options = replace(self.options, disable_plugins=self._named("disable_plugins"))
        if "model_cost_config" not in self.given:
            self.options = replace(self.options, prices=_prices([family[-1].header for family in self._families]))

    def _named(self, option: str) -> tuple[str, ...]:
        """What the runs of these logs had been given for an option that takes several."""
        found = [item for family in self._families for item in logged_options(family[-1].header).get(option, ())]
        return tuple(dict.fromkeys(found))

    def release(self) -> None:
        """Let go of the logs."""
        for index in self._held:
            index.release()

    async def run(self) -> RunResult:
        """Run what is not done."""
        return await run_planned(self._plan, self.options, self._agenda)

    def _family(self, name: str) -> list[LogIndex]:
        first = self._index(name)
        others, missing = attempts_of(first.header)
        found = [first]
        for other in others:
            with suppress(BadLogError):  # whatever stands there has no samples to give
                found.append(self._index(other))
        own = own_metadata(first.header.eval)
        if missing and "reused" not in own:
            gone = ", ".join(missing)
            text = f"{name} goes on from {gone}, which is not there any more: what only that has is run again"
            warn(text, stacklevel=3)
        runs = without_scored_copies([index.header for index in found])
        self._copies.update(index.location for index in found if all(index.header is not run for run in runs))
        # A copy is of the work of the run that it is a copy of, whatever it is scored with.
        [run, *_] = [header for header in runs if header.eval.eval_id == first.header.eval.eval_id]
        unit = logged_unit(run)
        family = [index for index in found if index.header is run or (unit and logged_unit(index.header) == unit)]
        family = [index for index in family if index.location not in self._copies]
        return sorted(family, key=lambda index: (index.header.eval.created, index.location))

    def _index(self, location: str) -> LogIndex:
        index = index_eval_log(location, hold=True)
        self._held.append(index)
        return index

    def _plan(self) -> list[Unit]:
        units: list[Unit] = []
        for family in self._families:
            newest = family[-1].header
            _check_version(newest, self._force)
            _check_samples(family, self._force)
            self._tell_budget(newest)
            unit = planned_again(newest, self.options, self.given)
            if unit.id != logged_unit(newest) and not self._force:
                raise _changed(newest, unit)
            if unit.id in {known.id for known in units}:
                raise UsageError(
                    f"{newest.location} is of the same work as another of these logs, but of an evaluation of its own: "
                    "resume one after the other."
                )
            units.append(unit)
        return labelled(units)

    def _tell_budget(self, header: EvalLog) -> None:
        """A budget counts one run: what is left of it is for a person to say."""
        own = logged_options(header)
        spent = [f"{name}={own[name]}" for name in sorted(_BUDGETS) if name in own]
        if spent and not _BUDGETS & self.given:
            text = f"the run of {header.location} had {', '.join(spent)}; this one has no budget unless you give one"
            warn(text, stacklevel=3)

    def _agenda(self, units: Sequence[Unit]) -> Agenda:
        resumed = [self._resumed(unit, family) for unit, family in zip(units, self._families, strict=True)]
        if self._tell is not None:
            self._tell(resumed)
        return Agenda(
            complete={one.unit.id: one.complete for one in resumed if one.complete is not None},
            prior={one.unit.id: one.logs for one in resumed if one.logs and one.complete is None},
        )

    def _resumed(self, unit: Unit, family: Sequence[LogIndex]) -> Resumed:
        if self._force:
            return Resumed(unit, [], resume_plan(unit, [], "changed"), None)
        plan = resume_plan(unit, family)
        return Resumed(unit, family, plan, None if plan.to_run else _complete(unit, family))


def _complete(unit: Unit, family: Sequence[LogIndex]) -> EvalLog | None:
    """The header of the newest log that has all samples and says so."""
    for index in reversed(family):
        if index.header.status == "success" and not resume_plan(unit, [index]).to_run:
            return index.header
    return None


def _check_version(header: EvalLog, force: bool) -> None:
    if force:
        return
    anew = "Evaluate it anew, or pass --force to run its task as a new evaluation."
    if logged_unit(header) is None:
        packages = header.eval.packages
        who = "Inspect AI" if "inspect_ai" in packages else "a release of Proctor that names no unit"
        if "inspect_ai" not in packages and not any(name.startswith("proctor") for name in packages):
            who = "another program"
        raise UsageError(
            f"{header.location} was made by {who}: nothing in it says whether its samples belong to what would run "
            f"now. {anew}"
        )
    version = (logged_ingredients(header) or {}).get("v", IDENTITY_VERSION)
    if version != IDENTITY_VERSION:
        raise UsageError(
            f"{header.location} names its work by version {version} of the identity; this release has version "
            f"{IDENTITY_VERSION}, and the two can't be compared. {anew}"
        )


def _prices(headers: Sequence[EvalLog]) -> ModelPrices:
    """What the runs of these logs were told that models cost."""
    table: dict[str, Any] = {}
    for header in headers:
        for model, cost in logged_options(header).get("model_cost_config", {}).items():
            if table.setdefault(model, cost) != cost:
                raise UsageError(
                    f"{header.location} has other prices for {model} than another of these logs: say which hold with "
                    "--model-cost-config, or resume one after the other."
                )
    return ModelPrices.of(table, headers[0].location)


def _check_samples(family: Sequence[LogIndex], force: bool) -> None:
    for index in family:
        if index.header.eval.config.log_samples is False and not force:
            raise UsageError(
                f"{index.location} holds no samples (its run had --no-log-samples), so all of them would be paid for "
                "again. Evaluate it anew, or pass --force to run its task as a new evaluation."
            )


def _changed(header: EvalLog, unit: Unit) -> UsageError:
    known = logged_ingredients(header)
    changes = identity_changes(known, unit.identity) if known is not None else []
    lines = [f"  {line}" for line in changes[:_CHANGES]]
    if len(changes) > _CHANGES:
        lines.append(f"  and {len(changes) - _CHANGES} more")
    what = "\n" + "\n".join(lines) if lines else " (the log does not say what it was made of)."
    return UsageError(
        f"{header.location} is of other work than what would run now:{what}\n"
        "Undo the change to go on with it, or pass --force to run all of it as a new evaluation."
    )
