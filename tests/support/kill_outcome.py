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
from kill_server import CountingServer
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
        wanted, size = self._alone(plan.format, plan.samples, plan.epochs)
        self._server.fresh()
        world = World(self._folder / f"{plan.seed}-{type(place).__name__}", self._server, plan, place)
        outcome = Outcome(plan)
        for moment in plan.moments:
            code = world.go_on(moment)
            if code == 0 and outcome.kept:  # what was left was done before the moment came
                break
            outcome.kept.append(len(world.acknowledged))
            if code != -signal.SIGKILL:
                outcome.faults.append(f"it was not killed: exit code {code}\n{world.output}")
                break
            outcome.lost += len(world.lost())
            if len(outcome.kept) == 1:
                for location in world.logs:
                    outcome.faults += world.check_readable(location) + world.check_recovered(location)
        code = world.go_on()
        outcome.asked = self._server.asked.total()
        outcome.lost += len(world.lost())
        outcome.again = len(self._server.again)
        if outcome.lost or outcome.again:
            outcome.faults.append(f"{outcome.lost} lost, {outcome.again} asked again: {self._server.again[:5]}")
        if code != 0:
            outcome.faults.append(f"the last one failed: exit code {code}\n{world.output}")
            return outcome
        last = world.logs[-1]
        outcome.size = _size(world.place.log_dir, last) / size
        if outcome.size > LARGER:
            outcome.faults.append("the log is too big")
        outcome.faults += _differences(_results(read_eval_log(last)), wanted)
        return outcome

    def _left_alone(self, format: str, samples: int, epochs: int) -> tuple[dict[str, Any], int]:
        plan = Plan(0, format, "asyncio", 1, (), samples, epochs)
        world = World(self._folder / f"alone-{format}-{samples}-{epochs}", self._server, plan)
        assert world.evaluate() == 0, world.output
        [location] = world.logs
        results = _results(read_eval_log(location))
        assert len(results["scores"]) == plan.total
        return results, _size(world.place.log_dir, location)


def _size(log_dir: str, location: str) -> int:
    return next(info.size for info in list_eval_logs(log_dir) if info.name == location)


def _results(log: EvalLog) -> dict[str, Any]:
    """What a log comes to: its status, its metrics, and each sample's score."""
    results = log.results
    metrics = {
        f"{score.name}/{name}": metric.value
        for score in (results.scores if results else ())
        for name, metric in score.metrics.items()
    }
    scores = {(one.id, one.epoch): one.scores["includes"].value for one in log.samples or () if one.scores}
    counts = (results.total_samples, results.completed_samples) if results else None
    return {"status": log.status, "counts": counts, "metrics": metrics, "scores": scores}


def _differences(results: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """In what two results differ; metrics may by 1e-9."""
    found = [f"{name} differ" for name in ("status", "counts", "scores") if results[name] != wanted[name]]
    mine, theirs = results["metrics"], wanted["metrics"]
    same = mine.keys() == theirs.keys() and all(math.isclose(mine[name], theirs[name], abs_tol=1e-9) for name in mine)
    return found if same else [*found, f"metrics: {mine}, not {theirs}"]
