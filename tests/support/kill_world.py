"""An evaluation that is killed, and what must hold then: the steps of the kill tests."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from child_processes import running
from kill_plan import Moment, Plan
from kill_server import CountingServer, Key

from proctor.contracts import UsageError
from proctor.log import (
    BadLogError,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    recover_eval_log,
)
from proctor.schema import EvalLog

__all__ = ["Outcome", "World", "results_of"]

HERE = Path(__file__).parents[1] / "kill"
PATIENCE = 120  # seconds that one process may take
ONE_BY_ONE = 8  # samples that are also read alone, of those that were acknowledged


@dataclass
class Outcome:
    """What became of one plan; ``faults`` is empty when all held."""

    plan: Plan
    acknowledged: list[int] = field(default_factory=list)
    """How many samples were acknowledged at each kill."""
    asked: int = 0
    size: float = 0.0
    """Of the last log, to that of a run that was left alone."""
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kept = "+".join(map(str, self.acknowledged)) or "0"
        what = "; ".join(self.faults) or "nothing lost, nothing twice, equal"
        return f"{self.plan} | kept {kept} of {self.plan.total}, asked {self.asked} | {what}, {self.size:.2f}x"


class World:
    """A folder with one evaluation, its log, and the processes that work at it one after the other."""

    def __init__(self, folder: Path, server: CountingServer, plan: Plan, log_dir: str | None = None) -> None:
        self.folder = folder
        self.server = server
        self.plan = plan
        self.log_dir = log_dir or str(folder / "logs")
        self.acknowledged: set[Key] = set()
        self.output = ""
        self._processes = 0
        folder.mkdir(parents=True, exist_ok=True)

    # Processes

    def evaluate(self, at: Moment | None = None) -> int:
        """A new run, killed ``at`` a moment; its exit code (negative: the signal)."""
        plan = self.plan
        words = ["eval", str(HERE / "asks.py"), "--model", "openai/gpt-4o-mini", "--log-format", plan.format]
        words += ["-T", f"samples={plan.samples}", "-T", f"epochs={plan.epochs}", "--log-dir", self.log_dir]
        words += ["--log-buffer", str(plan.buffer), "--max-connections", "5"]
        return self._process(words, at)

    def _process(self, words: Sequence[str], at: Moment | None) -> int:
        self._processes += 1
        witness, said = (self.folder / f"{name}-{self._processes}.txt" for name in ("acks", "said"))
        env = os.environ | {
            "OPENAI_API_KEY": "sk-test-1f2e3d4c5b6a",
            "OPENAI_BASE_URL": self.server.base_url,
            "KILL_ACKS": str(witness),
        }
        if at is not None and at.kind != "request":
            env["KILL_AT"] = f"{at.kind}:{at.count}:{at.share}"
        common = ["--plugin", str(HERE / "witness.py"), "--observer", "witness", "--display", "none"]
        command = [sys.executable, "-m", "proctor", *words, *common, "--async-backend", self.plan.backend]
        with (
            said.open("w") as output,
            running(command, cwd=self.folder, env=env, stdout=output, stderr=output) as process,
        ):

            def arrived(count: int) -> None:
                if at is not None and at.kind == "request" and count == at.count:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)

            with self.server.during(frozenset(self.acknowledged), arrived):
                code = process.wait(PATIENCE)
        self.output = said.read_text()
        self.acknowledged |= _keys(witness)
        return code

    # What must hold

    @property
    def logs(self) -> list[str]:
        """The logs, oldest first."""
        found = [path for path in Path(self.log_dir).iterdir() if path.suffix in (".eval", ".json")]
        return [str(path) for path in sorted(found, key=lambda path: path.stat().st_mtime_ns)]

    def check_readable(self, location: str) -> list[str]:
        """What is wrong with the log of a killed run: every acknowledged sample is there for every way of reading."""
        faults = []
        try:
            log = read_eval_log(location)
        except BadLogError as error:  # killed before its beginning was written
            return [f"it can't be read: {error}"] if self.acknowledged else []
        faults += self._missing("the log", {(int(one.id), one.epoch) for one in log.samples or ()})
        rows = {(int(row.id), row.epoch) for row in read_eval_log_sample_summaries(location)}
        faults += self._missing("its summaries", rows)
        if read_eval_log(location, header_only=True).eval.task != "asks":
            faults.append("its header is another's")
        known = sorted(self.acknowledged)
        for id, epoch in Random(self.plan.seed).sample(known, min(ONE_BY_ONE, len(known))):
            if not read_eval_log_sample(location, id, epoch).scores:
                faults.append(f"sample {id}/{epoch} has no score")
        return faults

    def check_recovered(self, location: str) -> list[str]:
        """What is wrong with that log after its recovery."""
        target = str(self.folder / f"recovered-{self._processes}{Path(location).suffix}")
        try:
            recover_eval_log(location, target)
        except (BadLogError, UsageError) as error:
            if self.acknowledged and "there is nothing to recover" not in str(error):
                return [f"it can't be recovered: {error}"]
            return []
        found = {(int(one.id), one.epoch) for one in read_eval_log(target).samples or ()}
        return self._missing("the recovered log", found)

    def _missing(self, where: str, found: set[Key]) -> list[str]:
        lost = sorted(self.acknowledged - found)
        return [f"{len(lost)} acknowledged samples are not in {where}: {lost[:5]}"] if lost else []


def results_of(log: EvalLog) -> dict[str, Any]:
    """What a log comes to: its status, its metrics, and each sample's score."""
    assert log.results is not None
    metrics = {
        f"{score.name}/{name}": metric.value for score in log.results.scores for name, metric in score.metrics.items()
    }
    scores = {(one.id, one.epoch): one.scores["includes"].value for one in log.samples or () if one.scores}
    counts = log.results.total_samples, log.results.completed_samples
    return {"status": log.status, "counts": counts, "metrics": metrics, "scores": scores}


def differences(results: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """In what two results differ; metrics may by 1e-9."""
    found = [
        f"{name}: {results[name]}, not {wanted[name]}"
        for name in ("status", "counts", "scores")
        if results[name] != wanted[name]
    ]
    mine, theirs = results["metrics"], wanted["metrics"]
    same = mine.keys() == theirs.keys() and all(math.isclose(mine[name], theirs[name], abs_tol=1e-9) for name in mine)
    return found if same else [*found, f"metrics: {mine}, not {theirs}"]


def _keys(witness: Path) -> set[Key]:
    if not witness.exists():
        return set()
    rows = (line.split() for line in witness.read_text().splitlines())
    return {(int(id), int(epoch)) for id, epoch in rows}
