"""One plan from the first process to the last, and how what it came to is judged."""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kill_places import Place
from kill_plan import Plan
from kill_server import CountingServer, Key
from kill_world import World

from proctor.log import list_eval_logs, read_eval_log
from proctor.schema import EvalLog

__all__ = ["Judge", "Outcome"]

LARGER = 1.1  # times the log of a run that was left alone


@dataclass
class Outcome:
    """What became of one plan; ``faults`` is empty when all held."""

    plan: Plan
    kept: list[int] = field(default_factory=list)
    """How many samples were acknowledged before each kill."""
    asked: int = 0
    """Requests in all; those that were in flight or not yet acknowledged at a kill are sent again."""
    size: float = 0.0
    """Of the last log, to that of a run that was left alone."""
    lost: int = 0
    """Samples that were acknowledged, and are in none of the logs."""
    again: int = 0
    """Requests for samples that were acknowledged before."""
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kept = ", ".join(map(str, self.kept))
        what = "; ".join(self.faults) or "none lost, none twice, equal"
        return f"{self.plan} | kept {kept} of {self.plan.total}, asked {self.asked}, {self.size:.2f}x | {what}"


class Judge:
    """Plays plans, and compares each with a run that was left alone."""

    def __init__(self, folder: Path, server: CountingServer) -> None:
        self._folder = folder
        self._server = server
        self._alone = cache(self._left_alone)

    def play(self, plan: Plan, place: Place | None = None) -> Outcome:
        """Kill and resume as the plan says, then resume to the end."""
        wanted, sizes = self._alone(plan.format, plan.set)
        self._server.fresh()
        world = World(self._folder / f"{plan.seed}{'-remote' if place else ''}", self._server, plan, place)
        outcome, lost = Outcome(plan), set[Key]()
        for moment in plan.moments:
            code = world.go_on(moment)
            if code == 0 and outcome.kept:  # what was left was done before the moment came
                break
            outcome.kept.append(len(world.acknowledged))
            if code != -signal.SIGKILL:
                outcome.faults.append(f"it was not killed: exit code {code}\n{world.output}")
                break
            lost |= world.lost()
            if len(outcome.kept) == 1:
                outcome.faults += world.check_readable() + world.check_recovered()
        code = world.go_on()
        outcome.asked = self._server.asked.total()
        outcome.lost = len(lost | world.lost())
        outcome.again = len(self._server.again)
        if outcome.lost or outcome.again:
            outcome.faults.append(f"{outcome.lost} lost, {outcome.again} asked again: {self._server.again[:5]}")
        if code != 0:
            outcome.faults.append(f"the last one failed: exit code {code}\n{world.output}")
            return outcome
        found = _sizes(world)
        outcome.size = max(found[task] / sizes[task] for task in sizes) if found.keys() == sizes.keys() else 0.0
        if outcome.size > LARGER:
            outcome.faults.append("the log is too big")
        outcome.faults += _differences(_results(world), wanted)
        return outcome

    def _left_alone(self, format: str, set: bool) -> tuple[dict[str, Any], dict[str, int]]:
        plan = Plan(1, format, "asyncio", 1, (), set)
        world = World(self._folder / f"alone-{format}{'-set' if set else ''}", self._server, plan)
        assert world.evaluate() == 0, world.output
        results = _results(world)
        assert sum(len(one["scores"]) for one in results.values()) == plan.total
        return results, _sizes(world)


def _sizes(world: World) -> dict[str, int]:
    """Of the newest log of each task, in bytes."""
    sizes = {info.name: info.size for info in list_eval_logs(world.place.log_dir)}
    return {task: sizes[location] for task, location in world.last().items()}


def _results(world: World) -> dict[str, dict[str, Any]]:
    """What the newest log of each task comes to: its status, its metrics, and each sample's score."""
    return {task: _result(read_eval_log(location)) for task, location in world.last().items()}


def _result(log: EvalLog) -> dict[str, Any]:
    results = log.results
    metrics = {
        f"{score.name}/{name}": metric.value
        for score in (results.scores if results else ())
        for name, metric in score.metrics.items()
    }
    scores = {(one.id, one.epoch): one.scores["includes"].value for one in log.samples or () if one.scores}
    counts = (results.total_samples, results.completed_samples) if results else None
    return {"status": log.status, "counts": counts, "metrics": metrics, "scores": scores}


def _differences(found: dict[str, dict[str, Any]], wanted: dict[str, dict[str, Any]]) -> list[str]:
    """In what results differ; metrics may by 1e-9."""
    if found.keys() != wanted.keys():
        return [f"logs of {sorted(found)}, not of {sorted(wanted)}"]
    faults = []
    for task, right in wanted.items():
        faults += [
            f"{name} of {task} differ" for name in ("status", "counts", "scores") if found[task][name] != right[name]
        ]
        mine, theirs = found[task]["metrics"], right["metrics"]
        if mine.keys() != theirs.keys() or not all(math.isclose(mine[one], theirs[one], abs_tol=1e-9) for one in mine):
            faults.append(f"metrics of {task}: {mine}, not {theirs}")
    return faults
