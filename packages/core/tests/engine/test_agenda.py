"""What a run does with units that failed, and with units that are complete already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Task
from proctor.dataset import Sample
from proctor.engine import Agenda, Retries, RunResult, Unit, run
from proctor.log import read_eval_log
from proctor.scorer import includes
from proctor.solver import Generate, Solver, TaskState, generate, solver

AT_ONCE = Retries(attempts=3)


@pytest.fixture(params=["asyncio", "trio"])
def evaluate(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., RunResult]:
    def evaluate(tasks: Any, agenda: Agenda, model: Any = "mock/model", **options: Any) -> RunResult:
        given = {"display": "none", "log_dir": str(tmp_path), "async_backend": request.param, **options}
        return run(tasks, model, given, lambda units: agenda)

    return evaluate


def _task(name: str, *solvers: Solver, samples: int = 3) -> Task:
    dataset = [Sample(input=f"{name} {n}", target="Default", id=n) for n in range(1, samples + 1)]
    return Task(name=name, dataset=dataset, solver=[*solvers, generate()], scorer=includes())


def fails(times: int, tries: Counter[str]) -> Solver:
    """Fail in sample 1 so often; ``tries`` counts, and is no argument: it would be part of the unit's identity."""

    @solver
    def failing() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            tries[f"{state.sample_id}"] += 1
            if state.sample_id == 1 and tries["1"] <= times:
                raise OSError("no route to host")
            return state

        return solve

    return failing()


def test_a_unit_that_failed_is_run_again_until_it_is_done(evaluate: Callable[..., RunResult], tmp_path: Path) -> None:
    tries: Counter[str] = Counter()
    result = evaluate(_task("quiz", fails(2, tries)), Agenda(retries=AT_ONCE))
    assert (result.exit_code, [log.status for log in result.logs]) == (0, ["success"])
    assert tries == {"1": 3, "2": 1, "3": 1}
    # Nothing is deleted: each attempt has left a log.
    statuses = sorted(read_eval_log(str(file), header_only=True).status for file in tmp_path.glob("*.eval"))
    assert statuses == ["error", "error", "success"]


def test_there_is_an_end_of_attempts(evaluate: Callable[..., RunResult], tmp_path: Path) -> None:
    tries: Counter[str] = Counter()
    result = evaluate(_task("quiz", fails(99, tries)), Agenda(retries=Retries(attempts=1)))
    assert (result.exit_code, [log.status for log in result.logs]) == (1, ["error"])
    assert tries["1"] == 2


def test_it_is_not_run_again_when_nobody_knows_what_it_has_done(
    evaluate: Callable[..., RunResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def lost(location: str) -> Any:
        raise OSError("the store does not answer")

    monkeypatch.setattr("proctor.engine._run.index_eval_log", lost)
    tries: Counter[str] = Counter()
    result = evaluate(_task("quiz", fails(1, tries)), Agenda(retries=AT_ONCE))
    assert (result.exit_code, tries["1"]) == (1, 1)
    assert "quiz (mock/model) is not tried again: what it has done can't be read from" in capsys.readouterr().err


def test_it_starts_again_while_another_still_runs(evaluate: Callable[..., RunResult]) -> None:
    tries: Counter[str] = Counter()
    came_back = anyio.Event()

    @solver
    def notices() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if tries["1"] >= 2:
                came_back.set()
            return state

        return solve

    @solver
    def waits_for_the_other() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            with anyio.fail_after(60):
                await came_back.wait()
            return state

        return solve

    tasks = [_task("first", fails(1, tries), notices()), _task("second", waits_for_the_other())]
    result = evaluate(tasks, Agenda(retries=AT_ONCE), max_tasks=2)
    assert [log.status for log in result.logs] == ["success", "success"]


def test_a_complete_unit_is_not_run_and_stands_in_the_result(
    evaluate: Callable[..., RunResult], tmp_path: Path
) -> None:
    tries: Counter[str] = Counter()
    quiz, other = _task("quiz", fails(0, tries)), _task("other")
    first = evaluate(quiz, Agenda())
    complete = {first.units[0].id: first.logs[0]}
    seen: list[Unit] = []

    def agenda(units: Sequence[Unit]) -> Agenda:
        seen.extend(units)
        return Agenda(complete=complete, eval_set_id="SET")

    result = run([quiz, other], "mock/model", {"display": "none", "log_dir": str(tmp_path)}, agenda)
    assert [unit.name for unit in seen] == ["quiz", "other"]
    assert (result.exit_code, [log.eval.task for log in result.logs]) == (0, ["quiz", "other"])
    assert result.logs[0].location == first.logs[0].location
    assert tries == {"1": 1, "2": 1, "3": 1}
    assert result.logs[1].eval.eval_set_id == "SET"
    assert len(list(tmp_path.glob("*.eval"))) == 2


PLUGIN = """
from proctor.contracts import Observer, ObserverProvider
from proctor.hookspecs import hookimpl

class Attempts(Observer):
    def task_start(self, event): self.note("start", event.unit, event.spec.task_id)
    def sample_end(self, event): self.note("sample", event.unit, event.summary.id)
    def task_end(self, event): self.note("end", event.unit, event.header.status)
    def note(self, *words):
        with open(FILE, "a") as file: file.write(" ".join(map(str, words)) + "\\n")

@hookimpl
def proctor_observers():
    return [ObserverProvider(name="attempts", factory=lambda args: Attempts())]
"""


def test_observers_are_told_of_each_attempt_and_not_again_of_what_is_taken_over(
    evaluate: Callable[..., RunResult], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    tries: Counter[str] = Counter()
    noted = tmp_path / "noted.txt"
    plugin = tmp_path / f"attempts_{request.node.callspec.id}.py"
    plugin.write_text(f"FILE = {str(noted)!r}\n{PLUGIN}")
    result = evaluate(
        _task("quiz", fails(1, tries)),
        Agenda(retries=AT_ONCE),
        plugins=[str(plugin)],
        observers=["attempts"],
        continue_on_fail=True,
        max_samples=1,
    )
    unit, id = result.units[0].id, result.logs[0].eval.task_id
    assert noted.read_text().splitlines() == [
        f"start {unit} {id}",
        *(f"sample {unit} {n}" for n in (1, 2, 3)),
        f"end {unit} error",
        f"start {unit} {id}",
        f"sample {unit} 1",
        f"end {unit} success",
    ]


@given(st.integers(0, 2_000), st.just(0.0) | st.floats(1e-3, 1e6), st.floats(0, 1e6), st.integers(1, 3_000))
def test_a_wait_doubles_up_to_the_longest(attempts: int, wait: float, longest: float, failed: int) -> None:
    rest = Retries(attempts, wait, longest).rest(failed)
    if failed > attempts:
        assert rest is None
        return
    assert rest is not None and 0 <= rest <= longest
    before = Retries(attempts, wait, longest).rest(failed - 1) if failed > 1 else None
    assert rest == min(longest, wait if before is None else 2 * before)


def test_the_waits_of_the_default() -> None:
    retries = Retries(attempts=5, wait=10, longest=60)
    assert [retries.rest(failed) for failed in range(1, 8)] == [10, 20, 40, 60, 60, None, None]
