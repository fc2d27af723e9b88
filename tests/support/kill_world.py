"""An evaluation that is killed, and what must hold then: the steps of the kill tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

from kill_places import Folder, Place
from kill_plan import Moment, Plan
from kill_process import doomed
from kill_server import CountingServer, Key

from proctor.contracts import UsageError
from proctor.log import (
    BadLogError,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    recover_eval_log,
)

__all__ = ["World"]

HERE = Path(__file__).parents[1] / "kill"
PATIENCE = 120  # seconds that one process may take
STILL = 20  # seconds after which one that has no memory is killed
ONE_BY_ONE = 5  # samples that are also read alone, of those that were acknowledged


class World:
    """A folder with one evaluation, its logs, and the processes that work at it one after the other.

    Args:
        folder: for what the processes say, and for the logs unless there is a ``place``.
        server: that they ask.
        plan: what is evaluated, and when the processes are killed.
        place: where the logs are.
    """

    def __init__(self, folder: Path, server: CountingServer, plan: Plan, place: Place | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.server = server
        self.plan = plan
        self.place = place or Folder(folder / "logs")
        self.acknowledged: set[Key] = set()
        """What all processes so far have acknowledged."""
        self.logs: list[str] = []
        """In the order in which they were made."""
        self.output = ""
        """What the last process said."""
        self._processes = 0

    # Processes

    def evaluate(self, at: Moment | None = None) -> int:
        """A new run, or the set from its beginning or from where it is; killed ``at`` a moment.

        Returns:
            Its exit code (negative: the signal).
        """
        plan = self.plan
        command, tasks, samples = ("eval-set", "", plan.samples // 2) if plan.set else ("eval", "@asks", plan.samples)
        words = [command, f"{HERE / 'asks.py'}{tasks}", "--model", "openai/gpt-4o-mini"]
        words += ["-T", f"samples={samples}", "-T", f"epochs={plan.epochs}"]
        return self._process([*words, *self._options(), *(["--clean"] if plan.clean else [])], at)

    def resume(self, location: str, at: Moment | None = None) -> int:
        """``proctor eval-retry`` of a log, killed ``at`` a moment."""
        return self._process(["eval-retry", location, *self._options()], at)

    def go_on(self, at: Moment | None = None) -> int:
        """What a person does next: the set again, or a resume of the newest log that holds anything."""
        for location in () if self.plan.set else reversed(self.logs):
            with suppress(BadLogError):
                read_eval_log(location, header_only=True)
                return self.resume(location, at)
        return self.evaluate(at)

    def _options(self) -> list[str]:
        plan = self.plan
        words = ["--log-dir", self.place.log_dir, "--log-format", plan.format, "--log-buffer", str(plan.buffer)]
        return [*words, "--max-connections", "5", "--async-backend", plan.backend]

    def _process(self, words: Sequence[str], at: Moment | None) -> int:
        self._processes += 1
        witness, said = (self.folder / f"{name}-{self._processes}.txt" for name in ("acks", "said"))
        common = ["--plugin", str(HERE / "witness.py"), "--observer", "witness", "--display", "none"]
        command = [sys.executable, "-m", "proctor", *words, *common]
        watched = partial(doomed, place=self.place, server=self.server, done=self.acknowledged)
        with watched(command, self.folder, acks=witness, said=said, at=at) as (process, kill):
            # Without memory a process may stand still. Then it ends as such processes do: somebody kills it.
            if at is not None and at.kind == "memory":
                with suppress(subprocess.TimeoutExpired):
                    process.wait(STILL)
                kill()
            code = process.wait(PATIENCE)
        self.output = said.read_text()
        self.acknowledged |= _keys(witness)
        found = [info.name for info in list_eval_logs(self.place.log_dir, descending=False)]
        self.logs = [name for name in self.logs if name in found]  # a set may have deleted some
        self.logs += [name for name in found if name not in self.logs]
        return code

    def last(self) -> dict[str, str]:
        """The newest log of each task."""
        found: dict[str, str] = {}
        for location in self.logs:
            with suppress(BadLogError):
                found[read_eval_log(location, header_only=True).eval.task] = location
        return found

    # What must hold

    def check_readable(self) -> list[str]:
        """What is wrong with the logs after the first kill: all that was acknowledged is there, however it is read."""
        whole, rows, faults = set[Key](), set[Key](), list[str]()
        for location in self.logs:
            try:
                log = read_eval_log(location)
            except BadLogError:  # killed before its beginning was written
                continue
            keys = {(int(one.id), one.epoch) for one in log.samples or ()}
            whole |= keys
            rows |= {(int(row.id), row.epoch) for row in read_eval_log_sample_summaries(location)}
            known = sorted(keys & self.acknowledged)
            for id, epoch in Random(self.plan.seed).sample(known, min(ONE_BY_ONE, len(known))):
                if not read_eval_log_sample(location, id, epoch).scores:
                    faults.append(f"sample {id}/{epoch} has no score")
        return faults + self._missing("the logs", whole) + self._missing("their summaries", rows)

    def check_recovered(self) -> list[str]:
        """What is wrong with these logs after their recovery."""
        found = set[Key]()
        for number, location in enumerate(self.logs):
            target = str(self.folder / f"recovered-{number}{Path(location).suffix}")
            try:
                recover_eval_log(location, target)
            except (BadLogError, UsageError):  # nothing is in it, or it is whole
                target = location
            with suppress(BadLogError):
                found |= {(int(one.id), one.epoch) for one in read_eval_log(target).samples or ()}
        return self._missing("what was recovered", found)

    def lost(self) -> set[Key]:
        """What is in none of the logs, though it was acknowledged."""
        found: set[Key] = set()
        for location in self.logs:
            with suppress(BadLogError):
                found |= {(int(row.id), row.epoch) for row in read_eval_log_sample_summaries(location)}
        return self.acknowledged - found

    def _missing(self, where: str, found: set[Key]) -> list[str]:
        lost = sorted(self.acknowledged - found)
        return [f"{len(lost)} acknowledged samples are not in {where}: {lost[:5]}"] if lost else []


def _keys(witness: Path) -> set[Key]:
    if not witness.exists():
        return set()
    rows = (line.split() for line in witness.read_text().splitlines())
    return {(int(id), int(epoch)) for id, epoch in rows}
