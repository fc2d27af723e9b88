"""What a set has to do, unit by unit, from what its folder holds. Nothing is sent, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from proctor.contracts import LogBusyError
from proctor.engine import (
    IDENTITY_VERSION,
    Unit,
    identity_changes,
    logged_ingredients,
    logged_unit,
    resume_plan,
    without_scored_copies,
)
from proctor.log import LogIndex, index_eval_log
from proctor.schema import EvalLog
from proctor.sets._folder import Alien, Folder, base_name, first_line

__all__ = ["SetPlan", "SetUnit", "State", "make_set_plan", "refusal"]

_MOST = 5  # units whose changes are told

State: TypeAlias = Literal["complete", "resumes", "new", "changed", "running"]


@dataclass(frozen=True, slots=True)
class SetUnit:
    """A unit and what there is of it.

    Args:
        unit: what is wanted.
        state: ``complete``: a finished log has every sample; ``resumes``: there are logs; ``new``: there is none;
            ``changed``: there are logs of the same task and model, made with another configuration; ``running``:
            somebody writes a log of it, or goes on with one.
        logs: headers of its logs, newest first; of ``changed``, those with the other configuration.
        done: how many of the wanted samples need not be run.
        why: how many are run, by the reason why they are not done.
        changes: what differs from the newest of ``logs``, a line each.
        prior: what the logs have, of a unit that resumes; oldest first.
    """

    unit: Unit
    state: State
    logs: tuple[EvalLog, ...] = ()
    done: int = 0
    why: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    prior: tuple[LogIndex, ...] = ()


@dataclass(frozen=True, slots=True)
class SetPlan:
    """All units of a set in plan order, and what else is in its folder.

    Args:
        units: what is wanted.
        aliens: files that are no logs of Proctor.
        others: headers of Proctor's logs that no unit goes on with.
    """

    units: tuple[SetUnit, ...]
    aliens: tuple[Alien, ...]
    others: tuple[EvalLog, ...]

    def of(self, state: State) -> list[SetUnit]:
        """The units in a state."""
        return [each for each in self.units if each.state == state]

    @property
    def finished(self) -> bool:
        """Whether nothing is left to run."""
        return all(each.state == "complete" for each in self.units)


def make_set_plan(units: Sequence[Unit], folder: Folder) -> SetPlan:
    """Match ``units`` with the logs in ``folder``; the indices of incomplete logs are read. Blocks."""
    logs: dict[str, list[EvalLog]] = {}
    attempts = without_scored_copies(folder.logs)
    for log in attempts:
        logs.setdefault(logged_unit(log) or "", []).append(log)
    wanted = {unit.id for unit in units}
    # Logs of a task and model with a configuration that nobody wants now. Only a unit without logs can be their
    # successor: where there are some, the change was made, and agreed to, before.
    former: dict[tuple[str, str], list[EvalLog]] = {}
    for log in attempts:
        if logged_unit(log) not in wanted:
            former.setdefault((log.eval.task, log.eval.model), []).append(log)
    damaged: dict[str, Alien] = {}
    rows = [_row(unit, logs.get(unit.id, []), former.get((unit.name, unit.model.name), []), damaged) for unit in units]
    used = {log.location for row in rows for log in row.logs}.union(damaged)
    return SetPlan(
        units=tuple(rows),
        aliens=(*folder.aliens, *damaged.values()),
        others=tuple(log for log in folder.logs if log.location not in used),
    )


def _row(unit: Unit, logs: Sequence[EvalLog], former: Sequence[EvalLog], damaged: dict[str, Alien]) -> SetUnit:
    if not logs and former:
        return SetUnit(unit, "changed", tuple(former), changes=tuple(_changes(former[0], unit)))
    complete = next((log for log in logs if _covers(log, unit)), None)
    # What was invalidated in one log may stand in another: only the samples tell.
    if complete is not None and not any(log.invalidated for log in logs):
        return _complete(unit, complete, logs)
    try:
        prior = [index for log in reversed(logs) if (index := _indexed(log, damaged)) is not None]
    except LogBusyError:
        return SetUnit(unit, "running", tuple(logs))
    if not prior:
        return SetUnit(unit, "new")
    kept = tuple(log for log in logs if log.location not in damaged)
    plan = resume_plan(unit, prior)
    if complete is not None and not plan.why["invalidated"]:
        return _complete(unit, complete, logs)
    return SetUnit(
        unit,
        "resumes",
        kept,
        done=plan.reused,
        why={str(reason): count for reason, count in plan.why.items()},
        prior=tuple(prior),
    )


def _complete(unit: Unit, log: EvalLog, logs: Sequence[EvalLog]) -> SetUnit:
    others = [other for other in logs if other is not log]
    return SetUnit(unit, "complete", (log, *others), done=unit.total or _total(log))


def _indexed(log: EvalLog, damaged: dict[str, Alien]) -> LogIndex | None:
    """What ``log`` has; nothing, and an entry in ``damaged``, when that can't be read.

    Raises:
        LogBusyError: somebody writes it, or goes on with it.
    """
    try:
        return index_eval_log(log.location)
    except LogBusyError:
        raise
    except (OSError, ValueError) as error:
        damaged[log.location] = Alien(
            base_name(log.location), f"a log of the set that is damaged ({first_line(error)})"
        )
        return None


def _covers(log: EvalLog, unit: Unit) -> bool:
    """Whether ``log`` is the finished evaluation of all that is wanted of ``unit``, and maybe of more."""
    if log.status != "success" or log.invalidated or (log.eval.config.epochs or 1) < unit.epochs:
        return False
    if not _as_wanted(log, unit):
        return False
    wanted, there = unit.samples.ids(), log.eval.dataset.sample_ids
    if wanted is None or there is None:
        return _same_selection(log, unit)
    held = set(map(str, there))
    return all(str(id) in held for id in wanted)


def _as_wanted(log: EvalLog, unit: Unit) -> bool:
    """Whether its results are reduced as the unit's are, with no more errors than the unit allows."""
    if log.eval.config.epochs_reducer != unit.reducer_names:
        return False
    results = log.results
    return results is None or not unit.policy.exceeded(
        results.total_samples - results.completed_samples, results.total_samples
    )


def _same_selection(log: EvalLog, unit: Unit) -> bool:
    """Of a dataset whose ids are not listed: whether the same part of it was asked for."""
    config, limit = log.eval.config, unit.options.limit
    asked = list(limit) if isinstance(limit, tuple) else limit
    return (config.limit, config.sample_id) == (asked, unit.options.sample_id)


def _total(log: EvalLog) -> int:
    return log.results.total_samples if log.results else 0


def _changes(log: EvalLog, unit: Unit) -> Iterator[str]:
    """What differs between the configuration of ``log`` and that of ``unit``, a line each."""
    before = logged_ingredients(log)
    if before is None:
        yield "what its log was made with is not recorded there: an older release wrote it"
    elif (version := before.get("v")) != IDENTITY_VERSION:
        yield f"its log is of a release that tells units apart in another way ({version}, not {IDENTITY_VERSION})"
    else:
        yield from identity_changes(before, unit.identity)


def refusal(plan: SetPlan, *, new: bool = False) -> str | None:
    """Why the set can't be run, with what to do; ``None`` when it can.

    Args:
        plan: what was found.
        new: changed units are evaluated anew.
    """
    for each in plan.of("running"):
        return (
            f"{each.unit.title} is being run by another process, which has its log {each.logs[0].location}: wait until "
            "it is done (`proctor status` shows it), or stop it"
        )
    changed = [] if new else plan.of("changed")
    if not changed:
        return None
    parts = []
    for each in changed[:_MOST]:
        lines = "".join(f"\n  {change}" for change in each.changes)
        parts.append(f"the configuration of {each.unit.title} is not that of its log {each.logs[0].location}:{lines}")
    if len(changed) > _MOST:
        parts.append(f"so it is with {len(changed) - _MOST} more")
    what = "it" if len(changed) == 1 else "them"
    return "\n".join(parts) + (
        f"\nUndo the change to go on with what is there, or evaluate {what} anew beside it with --on-change new "
        '(on_change="new")'
    )
