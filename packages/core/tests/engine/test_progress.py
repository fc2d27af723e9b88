"""What the screen is told of a run: who fails, why, and by which gates it is held."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engine_runs import answers

from proctor import Task
from proctor.concurrency import Gate, all_connections, run_gates
from proctor.contracts import DEFAULT_CONNECTIONS
from proctor.dataset import Sample, json_dataset
from proctor.display import RunSnapshot, UnitSnapshot, unit_from_log
from proctor.engine import RunResult
from proctor.engine import run as run_tasks
from proctor.engine._progress import RunProgress, UnitProgress
from proctor.engine._status import RunStatus
from proctor.engine._tally import Tally
from proctor.model import get_model
from proctor.monitor import LoopWatch
from proctor.schema import EvalSample, EvalStats, Score
from proctor.scorer import includes
from proctor.solver import TaskState, solver


def planned(model: Any = "mock/model", **options: Any) -> RunResult:
    task = Task(name="one", dataset=[Sample(input="q", target="a")], scorer=includes())
    return run_tasks([task], model, {"dry_run": True, "display": "none", **options})


def test_retries_say_why_and_whose_they_are() -> None:
    [unit, other] = planned(["mock/a", "mock/b"], model_roles={"grader": "mock/judge"}).units
    progress = RunProgress([unit, other])
    unit.roles["grader"].note_error(OSError("refused"))
    assert progress.snapshot().units[0].retry_cause == ""  # it failed, but nothing is repeated
    unit.roles["grader"].count_retry("transient")
    first, second = progress.snapshot().units
    assert (first.retries, first.retry_cause) == (1, "grader: OSError: refused")
    assert (second.retries, second.retry_cause) == (0, "")
    unit.model.count_retry("transient")
    unit.model.note_error(OSError("no route"))
    first, _ = progress.snapshot().units
    assert (first.retries, first.retry_cause) == (2, "OSError: no route")


def test_a_long_wait_says_until_when(monkeypatch: pytest.MonkeyPatch) -> None:
    [unit] = planned().units
    progress = RunProgress([unit])
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    unit.model.note_error(OSError("429"))
    unit.model.count_retry("rate_limit", 300.0)
    unit.model.count_retry("rate_limit", 2.0)
    until = time.strftime("%H:%M:%S", time.localtime(now + 300))
    assert progress.snapshot().units[0].retry_cause == f"waits until {until}: OSError: 429"
    now += 299
    assert progress.snapshot().units[0].retry_cause == "OSError: 429"


@pytest.mark.parametrize(
    ("models", "names"),
    [(["mock/a"], ["mock"]), (["mock/a", "mock/b"], ["mock"])],
)
def test_models_that_share_connections_have_a_gate_named_after_their_provider(
    models: list[str], names: list[str]
) -> None:
    units = planned(models).units
    with run_gates():
        progress = RunProgress(units)
        for unit in units:
            unit.model.connections()
        assert [gate.name for gate in progress.snapshot().gates] == names


@solver
def fail(times: int) -> Any:
    """Fails the first ``times`` times."""
    left = [times]

    async def solve(state: TaskState, generate: Any) -> TaskState:
        left[0] -= 1
        if left[0] >= 0:
            raise ValueError("no such thing")
        return state

    return solve


def test_errors_have_their_line_and_samples_that_were_run_again_are_counted(run: Any, tmp_path: Path) -> None:
    task = Task(dataset=[Sample(input="q", target="a")], solver=fail(2), scorer=includes())
    [log] = run(task, retry_on_error=2)
    unit = unit_from_log(log)
    assert unit.retried == 1
    assert "retried" not in unit.outcomes
    [log] = run(Task(dataset=[Sample(input="q", target="a")], solver=fail(1), scorer=includes()))
    unit = unit_from_log(log)
    assert unit.error == "ValueError('no such thing')"
    assert "test_progress.py:" in unit.error_place


class Watcher:
    """A display that keeps its last snapshot."""

    last = RunSnapshot()

    def start(self, snapshot: RunSnapshot) -> None: ...
    def update(self, snapshot: RunSnapshot) -> None: ...
    def message(self, text: str, level: str = "info") -> None: ...
    def finish(self, snapshot: RunSnapshot, exit_code: int) -> None:
        Watcher.last = snapshot


def test_the_first_error_of_each_kind_is_kept_with_its_line(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.engine._run.make_display", lambda *asked: Watcher())
    samples = [Sample(input="q", target="a") for _ in range(3)]
    run(Task(dataset=samples, solver=fail(2), scorer=includes()), fail_on_error=False)
    unit: UnitSnapshot = Watcher.last.units[0]
    assert unit.errors == {"ValueError": 2}
    place, _, message = unit.error_examples["ValueError"].partition(": ")
    assert "test_progress.py:" in place
    assert message == "ValueError('no such thing')"


def test_the_running_score_is_that_of_all_samples_however_fast_they_came(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.engine._run.make_display", lambda *asked: Watcher())
    samples = [Sample(input=f"What is {place}?", target=str(place if place < 5 else -1)) for place in range(8)]
    task = Task(dataset=samples, scorer=includes())
    run(task, model=answers())
    assert dict(Watcher.last.units[0].metrics)["accuracy"] == 0.625
    run(task, model=answers(), score_display=False)
    assert Watcher.last.units[0].metrics == ()


def test_a_screen_that_asks_sees_a_new_score_and_does_not_wait_for_one() -> None:
    [unit] = planned().units
    progress = UnitProgress(unit)
    tally = Tally(progress, EvalStats(), lambda *reduced: None)
    for number, value in enumerate("CI"):
        tally.add(EvalSample(id=number, epoch=1, input="", target="", scores={"includes": Score(value=value)}), number)
        if value == "C":
            assert dict(progress.snapshot().metrics)["accuracy"] == 1.0
    with tally._lock:
        assert dict(progress.snapshot().metrics)["accuracy"] == 1.0
    assert dict(progress.snapshot().metrics)["accuracy"] == 0.5


def test_connections_of_a_grader_can_be_set_before_it_sends_its_first_request() -> None:
    judge = get_model("mock/judge", base_url="http://elsewhere.invalid", memoize=False)
    [unit] = planned(model_roles={"grader": judge}).units
    with run_gates(), ThreadPoolExecutor(1) as pool:
        assert [line.gate.name for line in all_connections()] == []
        status = RunStatus("id", RunProgress([unit]), Gate("tasks", 1), LoopWatch(), unit.options, "asyncio")
        answer = pool.submit(status.answer, {"ask": "set", "gate": "connections", "limit": 7, "of": "mock/judge"})
        while not answer.done():
            status.beat()
        assert answer.result(60)["changed"] == [{"name": "mock/judge", "old": DEFAULT_CONNECTIONS, "new": 7}]
        assert [line.gate.limit for line in all_connections()] == [7]


def test_a_sample_that_can_not_be_read_is_not_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given data of which a row can't be read, when the unit failed for it, then nothing of it is left running."""

    path = tmp_path / "rows.jsonl"
    path.write_text('{"input": "q", "target": "a"}\n' * 3)

    @solver
    def spoils() -> Any:
        async def solve(state: TaskState, generate: Any) -> TaskState:
            path.write_text("nothing of it is left\n" * 9)
            return state

        return solve

    ended: list[UnitProgress] = []
    finish = UnitProgress.finish
    monkeypatch.setattr(UnitProgress, "finish", lambda unit, *args: (ended.append(unit), finish(unit, *args)))
    task = Task(dataset=json_dataset(str(path)), solver=spoils(), scorer=includes())

    [log] = run_tasks([task], "mock/model", {"display": "none", "log_dir": str(tmp_path), "max_samples": 1}).logs

    assert log.error is not None and "was changed while it was being read" in log.error.message
    assert [unit.snapshot().running for unit in ended] == [0]
