from __future__ import annotations

import errno
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from proctor import Task, eval, eval_async
from proctor.contracts import Observer, ObserverProvider, RunEnd, UsageError
from proctor.dataset import Sample
from proctor.engine import _observe
from proctor.schema import EvalSampleSummary
from proctor.scorer import includes
from proctor.solver import Generate, Solver, TaskState, solver

PLUGIN = """
from proctor.contracts import Observer, ObserverProvider, UsageError
from proctor.hookspecs import hookimpl

TOLD = []

class Notes(Observer):
    def run_start(self, event): TOLD.append(("run_start", [unit.task for unit in event.units]))
    def task_start(self, event): TOLD.append(("task_start", event.spec.task))
    def sample_end(self, event):
        summary = event.summary
        TOLD.append(("sample_end", summary.id, summary.scores["includes"].value, event.load().output.completion))
    def task_end(self, event): TOLD.append(("task_end", event.header.status, event.location))
    def run_end(self, event):
        TOLD.append(("run_end", event.exit_code, [row.metrics["accuracy"] for row in event.table]))

class Pairs(Observer):
    def run_start(self, event): TOLD.append("run_start")
    def task_start(self, event): TOLD.append(("start", event.unit))
    def sample_end(self, event): TOLD.append(("sample", event.summary.input, event.summary.scores["includes"].value))
    def task_end(self, event): TOLD.append(("end", event.unit, event.header.status))
    def run_end(self, event): TOLD.append("run_end")

class Broken(Observer):
    def sample_end(self, event): raise RuntimeError("no thanks")

def choosy(args):
    raise UsageError("say where")

@hookimpl
def proctor_observers():
    return [
        ObserverProvider(name="notes", factory=lambda args: Notes()),
        ObserverProvider(name="broken", factory=lambda args: Broken()),
        ObserverProvider(name="pairs", factory=lambda args: TOLD.append("made") or Pairs()),
        ObserverProvider(name="unmade", factory=lambda args: 1 / 0),
        ObserverProvider(name="choosy", factory=choosy),
    ]
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_observers_are_told_in_order_after_the_fact_and_a_broken_one_disturbs_nobody(
    tmp_path: Path, backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"notes_{backend}.py"
    file.write_text(PLUGIN)
    told: list[tuple[Any, ...]] = []
    [log] = eval(
        Task(dataset=[Sample(input="q", target="Default", id=n) for n in (1, 2)], scorer=includes(), name="watched"),
        model="mock/model",
        display="none",
        log_dir=str(tmp_path / "logs"),
        async_backend=backend,
        plugins=[str(file)],
        observers=["notes", "broken"],
    )
    assert log.status == "success"
    told = _told(file)
    assert told[0] == ("run_start", ["watched"])
    assert told[1] == ("task_start", "watched")
    assert sorted(told[2:4]) == [
        ("sample_end", 1, "C", "Default output from mock/model"),
        ("sample_end", 2, "C", "Default output from mock/model"),
    ]
    assert told[4:] == [("task_end", "success", log.location), ("run_end", 0, [1.0])]
    assert "no thanks" in capfd.readouterr().err


@solver
def fails_or_cancels(scope: anyio.CancelScope | None = None) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id == 2:
            if scope is None:
                raise ValueError("no")
            scope.cancel()
            await anyio.sleep_forever()
        return await generate(state)

    return solve


def _watched(tmp_path: Path, name: str, **options: Any) -> tuple[Path, dict[str, Any]]:
    file = tmp_path / f"{name}.py"
    file.write_text(PLUGIN)
    given = {"display": "none", "log_dir": str(tmp_path / "logs"), "plugins": [str(file)], "observers": ["pairs"]}
    return file, {**given, **options}


def _two(scope: anyio.CancelScope | None = None) -> list[Task]:
    return [
        Task(
            dataset=[Sample(input="q", target="Default", id=n) for n in (1, 2)],
            solver=fails_or_cancels(scope),
            scorer=includes(),
            name=name,
        )
        for name in ("one", "two")
    ]


def _ends(told: list[Any]) -> list[str]:
    """The status of each unit that was started, after a check that each is ended once and all inside the run."""
    assert (told[1], told[-1]) == ("run_start", "run_end")
    started = [event[1] for event in told if event[0] == "start"]
    ended = [event[1] for event in told if event[0] == "end"]
    assert sorted(started) == sorted(ended) and len(set(started)) == len(started)
    return sorted(event[2] for event in told if event[0] == "end")


def test_every_start_has_one_end_when_units_are_aborted(tmp_path: Path) -> None:
    file, options = _watched(tmp_path, "pairs_aborted", max_samples=1)
    eval(_two(), model="mock/model", **options)
    assert _ends(_told(file)) == ["error", "error"]


@pytest.mark.anyio
async def test_every_start_has_one_end_when_the_run_is_cancelled(tmp_path: Path, anyio_backend_name: str) -> None:
    file, options = _watched(tmp_path, f"pairs_cancelled_{anyio_backend_name}", max_tasks=2, max_samples=1)
    with anyio.CancelScope() as scope:
        await eval_async(_two(scope), model="mock/model", async_backend=anyio_backend_name, **options)
    assert scope.cancelled_caught
    assert set(_ends(_told(file))) == {"cancelled"}


@pytest.mark.parametrize("commits", [1, 2])
def test_every_start_has_one_end_when_the_log_is_lost(
    tmp_path: Path, commits: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from proctor.log._file_store import _FileSink

    done: dict[int, int] = {}
    commit = _FileSink.commit

    def fails(self: _FileSink, segment: bytes, directory: Any) -> None:
        done[id(self)] = done.get(id(self), 0) + 1
        if done[id(self)] > commits:
            raise OSError(errno.EIO, "Input/output error")
        commit(self, segment, directory)

    monkeypatch.setattr(_FileSink, "commit", fails)
    file, options = _watched(tmp_path, f"pairs_lost_{commits}", display="plain")
    logs = eval(_two(), model="mock/model", continue_on_fail=True, **options)
    assert _ends(_told(file)) == ["error", "error"]
    assert all(log.status == "error" and log.error is not None and "Input/output" in log.error.message for log in logs)
    said = capfd.readouterr()
    assert "proctor log recover" in said.out + said.err


def test_a_dry_run_makes_no_observer_and_no_thread(tmp_path: Path) -> None:
    file, options = _watched(tmp_path, "pairs_dry", dry_run=True)
    before = set(threading.enumerate())
    eval(_two(), model="mock/model", **options)
    assert set(threading.enumerate()) <= before
    assert _told(file) == []


def test_an_observer_that_can_t_be_made_is_left_out_with_a_warning(tmp_path: Path) -> None:
    file, options = _watched(tmp_path, "pairs_unmade", observers=["pairs", "unmade"])
    with pytest.warns(UserWarning, match=r"'unmade'.*ZeroDivisionError.*goes on without it"):
        logs = eval(_two(), model="mock/model", **options)
    assert len(logs) == 2
    assert "run_end" in _told(file)


def test_an_observer_that_says_what_it_needs_is_refused_and_leaves_no_thread(tmp_path: Path) -> None:
    _, options = _watched(tmp_path, "pairs_choosy", observers=["notes", "choosy"])
    before = set(threading.enumerate())
    with pytest.raises(UsageError, match="say where"):
        eval(_two(), model="mock/model", **options)
    assert set(threading.enumerate()) <= before


def test_samples_with_lone_surrogates_are_told_of(tmp_path: Path) -> None:
    file, options = _watched(tmp_path, "pairs_surrogates")
    dataset = [Sample(input="half \ud83d", target="Default", id="\udc00", metadata={"k\ud83d": ["\ud83d"]})]
    eval(Task(dataset=dataset, scorer=includes()), model="mock/model", **options)
    [(_, text, value)] = [event for event in _told(file) if event[0] == "sample"]
    assert text in ("half \ud83d", "half \\ud83d")  # as it is, where pydantic takes it
    assert value == "C"


def test_a_summary_is_made_of_whatever_fields_there_are() -> None:
    found = _observe.sample_summary({"id": 1, "epoch": 1, "input": "\ud83d", "target": "t", "scores": "nonsense"})
    assert isinstance(found, EvalSampleSummary)
    assert (found.id, found.input) == (1, "\\ud83d")


def test_a_slow_observer_does_not_make_an_idle_one_look_unfinished(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_observe, "_DRAIN", 0.5)
    release, idle_ended = threading.Event(), threading.Event()

    class Slow(Observer):
        __slots__ = ()

        def run_end(self, event: RunEnd) -> None:
            release.wait(60)

    class Idle(Observer):
        __slots__ = ()

        def run_end(self, event: RunEnd) -> None:
            idle_ended.set()

    records = {
        "slow": ObserverProvider("slow", lambda args: Slow()),
        "idle": ObserverProvider("idle", lambda _: Idle()),
    }
    monkeypatch.setattr(_observe, "component_settings", lambda kind, name: (records[name], None))
    observers = _observe.Observers(["slow", "idle"])
    observers.start()
    try:
        observers.tell(RunEnd(0))
        assert idle_ended.wait(60)
        observers.close()
    finally:
        release.set()
    said = capfd.readouterr().err
    assert "'slow' did not finish" in said and "'idle'" not in said


def _told(file: Path) -> list[tuple[Any, ...]]:
    module = next(m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == str(file))
    found: list[tuple[Any, ...]] = module.TOLD  # the plugin above
    return found
