"""A log that is scored by a grader that costs money, killed while that goes on, and scored again."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from kill_places import Folder, Place
from kill_plan import Moment
from kill_process import doomed
from kill_server import CountingServer, Key

from proctor import eval
from proctor.log import BadLogError, open_log, read_eval_log, store_for

__all__ = ["ScoreJudge"]

HERE = Path(__file__).parents[1] / "kill"
KINDS = ("write", "told", "request", "synced", "replace", "written")
PATIENCE = 120  # seconds that one process may take
SAMPLES, EPOCHS = 40, 2


class ScoreJudge:
    """Scores one log again and again, each time killed at other moments."""

    def __init__(self, folder: Path, server: CountingServer) -> None:
        self._folder = folder
        self._server = server
        arguments = {"samples": SAMPLES, "epochs": EPOCHS}
        options: dict[str, Any] = {"log_dir": str(folder), "display": "none"}
        [log] = eval(f"{HERE / 'asks.py'}@asks", model="mock/model", task_args=arguments, **options)
        self._log = log.location
        self._processes = 0
        self._wanted: dict[str, Any] | None = None

    def play(self, seed: int, place: Place | None = None) -> list[str]:
        """What is wrong after a few kills and a last process that comes to its end; nothing when all held."""
        if self._wanted is None:
            self._server.fresh()
            alone = str(self._folder / "alone.eval")
            assert self._process(alone, "asyncio", Folder(self._folder), frozenset()) == 0
            self._wanted = _result(alone)
        self._server.fresh()
        random = Random(seed)
        backend = random.choice(["asyncio", "trio"])
        where = place or Folder(self._folder)
        output = f"{where.log_dir}/scored-{seed}.eval"
        faults: list[str] = []
        for number in range(1 + seed % 3):
            kind = "request" if place is not None else KINDS[(seed + number) % len(KINDS)]
            at = Moment(kind, random.randint(1, 15 if kind in ("told", "request") else 3), random.random())
            code = self._process(output, backend, where, frozenset(_kept(where, output)), at)
            if code == 0:  # what was left was done before the moment came
                break
            if code != -signal.SIGKILL:
                faults.append(f"{at}: it was not killed: exit code {code}, {self._said}")
            done, kept = self._done, _kept(where, output)
            if len(kept) < done and not _written(output):
                faults.append(f"{at}: {done} were acknowledged, {len(kept)} are kept")
        if self._process(output, backend, where, frozenset(_kept(where, output))) != 0:
            return [*faults, f"the last one failed: {self._said}"]
        if self._server.again:
            faults.append(f"asked again: {self._server.again[:5]}")
        if _result(output) != self._wanted:
            faults.append(f"{_result(output)}, not {self._wanted}")
        return faults + [f"{name} is left" for name in _names(where, output)]

    def _process(self, output: str, backend: str, place: Place, done: frozenset[Key], at: Moment | None = None) -> int:
        self._processes += 1
        acks, said = (self._folder / f"{kind}-{self._processes}.txt" for kind in ("acks", "said"))
        command = [sys.executable, str(HERE / "judge.py"), self._log, output, backend]
        watched = partial(doomed, place=place, server=self._server, done=done)
        with watched(command, self._folder, acks=acks, said=said, at=at) as (process, _):
            code = process.wait(PATIENCE)
        self._said = said.read_text()
        self._done = max(map(int, acks.read_text().split()), default=0) if acks.exists() else 0
        return code


def _names(place: Place, output: str) -> list[str]:
    """The files in which grades are kept."""
    store, folder = store_for(place.log_dir)
    own = f"{output.rpartition('/')[2]}.grades-"
    return [name for name, _ in store.list(folder) if name.rpartition("/")[2].startswith(own)]


def _kept(place: Place, output: str) -> set[Key]:
    """The samples whose grades are kept: nobody is to be asked for them again."""
    head = "s3://" if output.startswith("s3://") else ""
    found: set[Key] = set()
    for name in _names(place, output):
        with suppress(BadLogError):  # killed before its beginning was written
            found |= {(int(id), epoch) for id, epoch in open_log(head + name).keys()}  # noqa: SIM118 - it is no mapping
    return found


def _written(output: str) -> bool:
    store, name = store_for(output)
    try:
        store.stat(name)
    except FileNotFoundError:
        return False
    return True


def _result(location: str) -> dict[str, Any]:
    log = read_eval_log(location)
    assert log.results is not None
    used = log.stats.role_usage["grader"].total_tokens
    scores = {(one.id, one.epoch): (one.scores or {})["judged"].value for one in log.samples or ()}
    rows = [(row.name, {name: metric.value for name, metric in row.metrics.items()}) for row in log.results.scores]
    return {"tokens": used, "scores": scores, "rows": rows}
