"""Sets from beginning to end: a model that counts what it is asked, and fails as told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import anyio
import pytest

from proctor import Task, eval_set, score
from proctor.contracts import UsageError
from proctor.dataset import Sample
from proctor.engine import invalidate_samples
from proctor.log import index_eval_log, read_eval_log, read_eval_log_samples, write_eval_log
from proctor.model import Model, ModelOutput, get_model
from proctor.schema import EvalLog
from proctor.scorer import exact, includes
from proctor.sets import SetPlan, SetResult, held_set, run_set
from proctor.solver import Generate, Solver, TaskState, generate, solver

asked: Counter[str] = Counter()
failures: Counter[str] = Counter()


def reply(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
    """Module-level, as the model's arguments are part of a unit's identity."""
    text = input[-1].text
    asked[text] += 1
    if failures[text] > 0:
        failures[text] -= 1
        raise OSError(f"no route to host for {text}")
    return ModelOutput.from_content("model", "ANSWER")


@pytest.fixture(autouse=True)
def _nothing_asked() -> None:
    asked.clear()
    failures.clear()
    return


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "set"


Run = Callable[..., SetResult]


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest, folder: Path) -> Run:
    def run(tasks: Any, **options: Any) -> SetResult:
        given = {"display": "none", "log_dir": str(folder), "async_backend": request.param, "retry_wait": 0.0}
        return run_set(tasks, options.pop("model", None) or model(), {**given, **options})

    return run


def model(name: str = "mock/a") -> Model:
    return get_model(name, custom_outputs=reply, memoize=False)


def quiz(name: str = "quiz", samples: int = 4, *solvers: Solver) -> Task:
    dataset = [Sample(input=f"{name} {n}", target="ANSWER", id=n) for n in range(1, samples + 1)]
    return Task(name=name, dataset=dataset, solver=[*solvers, generate()], scorer=includes())


def states(plan: SetPlan) -> list[tuple[str, str, int]]:
    return [(each.unit.name, each.state, each.done) for each in plan.units]


def good(log: EvalLog) -> list[Any]:
    whole = read_eval_log(log.location)
    assert whole.samples is not None
    return sorted(sample.id for sample in whole.samples if sample.error is None)


def test_what_is_complete_is_not_asked_again(run: Run, folder: Path) -> None:
    first = run([quiz(), quiz("other")])
    assert states(first.plan) == [("quiz", "new", 0), ("other", "new", 0)]
    assert first.exit_code == 0 and set(asked.values()) == {1} and len(asked) == 8
    again = run([quiz(), quiz("other"), quiz("third", 1)])
    assert states(again.plan) == [("quiz", "complete", 4), ("other", "complete", 4), ("third", "new", 0)]
    assert [log.location for log in again.logs[:2]] == [log.location for log in first.logs]
    assert set(asked.values()) == {1} and len(asked) == 9
    assert again.eval_set_id == first.eval_set_id == again.logs[2].eval.eval_set_id
    assert len(list(folder.glob("*.eval"))) == 3


def test_a_dry_run_shows_the_plan_and_changes_nothing(run: Run, folder: Path) -> None:
    result = run(quiz(), dry_run=True)
    assert (result.logs, result.exit_code, states(result.plan)) == ([], 0, [("quiz", "new", 0)])
    assert not result.success
    assert not folder.exists() and not asked


def test_what_failed_is_tried_again_with_what_is_done(run: Run, folder: Path) -> None:
    failures["quiz 3"] = 2
    result = run(quiz(), max_samples=1)
    assert (result.exit_code, [log.status for log in result.logs]) == (0, ["success"])
    assert asked == {"quiz 1": 1, "quiz 2": 1, "quiz 3": 3, "quiz 4": 1}
    assert good(result.logs[0]) == [1, 2, 3, 4]
    logs = [read_eval_log(str(file), header_only=True) for file in folder.glob("*.eval")]
    assert len(logs) == 3 and len({log.eval.task_id for log in logs}) == 1


def test_called_again_it_goes_on_where_it_stopped(run: Run) -> None:
    failures["quiz 3"] = 1
    first = run(quiz(), retry_attempts=0, max_samples=1)
    assert (first.exit_code, first.logs[0].status) == (1, "error")
    again = run(quiz())
    assert states(again.plan) == [("quiz", "resumes", 2)]
    assert again.exit_code == 0
    assert asked == {"quiz 1": 1, "quiz 2": 1, "quiz 3": 2, "quiz 4": 1}
    assert again.logs[0].eval.task_id == first.logs[0].eval.task_id
    assert run(quiz()).plan.finished


def test_samples_of_several_attempts_are_put_together(run: Run) -> None:
    run(quiz(), sample_id=[1, 2])
    again = run(quiz(), sample_id=[3])
    assert states(again.plan)[0][1] == "resumes"
    last = run(quiz())
    assert states(last.plan) == [("quiz", "resumes", 3)]
    assert good(last.logs[0]) == [1, 2, 3, 4]
    assert asked == {"quiz 1": 1, "quiz 2": 1, "quiz 3": 1, "quiz 4": 1}


def test_more_samples_and_epochs_are_no_change(run: Run) -> None:
    assert run(quiz(), limit=2).exit_code == 0
    more = run(quiz(), epochs=2)
    assert states(more.plan) == [("quiz", "resumes", 2)]
    assert asked == {"quiz 1": 2, "quiz 2": 2, "quiz 3": 2, "quiz 4": 2}
    less = run(quiz(), limit=1)
    assert states(less.plan) == [("quiz", "complete", 1)]


def test_a_changed_configuration_is_refused_with_what_changed(run: Run) -> None:
    first = run(quiz(), temperature=0.0)
    with pytest.raises(UsageError, match=r"(?s)quiz \(mock/a\) is not that of its log .*temperature: 0.0 -> 0.7.*new"):
        run(quiz(), temperature=0.7)
    assert sum(asked.values()) == 4
    new = run(quiz(), temperature=0.7, on_change="new")
    assert (states(new.plan), new.exit_code) == ([("quiz", "changed", 0)], 0)
    assert sum(asked.values()) == 8
    assert new.logs[0].eval.task_id != first.logs[0].eval.task_id
    # Agreed to once, it is no change any more, in either direction.
    assert run(quiz(), temperature=0.7).plan.finished
    assert run(quiz(), temperature=0.0).plan.finished


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"unit": "of another release", "identity": {"v": 0}}, r"tells units apart in another way \(0, not 1\)"),
        ({"unit": "of another release"}, "an older release wrote it"),
    ],
)
def test_logs_of_other_releases_are_refused_with_the_reason(run: Run, own: dict[str, Any], says: str) -> None:
    first = run(quiz())
    log = read_eval_log(first.logs[0].location, header_only=True)
    assert log.eval.metadata is not None
    log.eval.metadata["proctor"] = own
    write_eval_log(log, header_only=True)
    with pytest.raises(UsageError, match=rf"(?s)quiz \(mock/a\) is not that of its log .*{says}.*--on-change new"):
        run(quiz())


def test_a_log_that_keeps_its_identity_but_not_what_it_was_made_of_is_gone_on_with(run: Run) -> None:
    first = run(quiz())
    log = read_eval_log(first.logs[0].location, header_only=True)
    assert log.eval.metadata is not None
    del log.eval.metadata["proctor"]["identity"]
    write_eval_log(log, header_only=True)
    assert run(quiz()).plan.finished


def test_how_a_task_is_run_may_change(run: Run) -> None:
    run(quiz(), max_retries=3, message_limit=50)
    assert run(quiz(), max_retries=0, max_connections=1, timeout=9, fail_on_error=0.5).plan.finished


def test_errors_within_the_threshold_are_complete(run: Run) -> None:
    failures["quiz 3"] = 9
    result = run(quiz(), fail_on_error=0.5)
    assert (result.exit_code, result.logs[0].status) == (0, "success")
    assert run(quiz(), fail_on_error=0.5).plan.finished
    failures.clear()
    stricter = run(quiz())
    assert (states(stricter.plan), stricter.exit_code) == ([("quiz", "resumes", 3)], 0)
    assert asked == {"quiz 1": 1, "quiz 2": 1, "quiz 3": 2, "quiz 4": 1}


def test_another_reducer_computes_anew_and_asks_nothing(run: Run) -> None:
    run(quiz(), epochs=2, epochs_reducer="mean")
    result = run(quiz(), epochs=2, epochs_reducer="max")
    assert (states(result.plan), result.exit_code) == ([("quiz", "resumes", 8)], 0)
    assert set(asked.values()) == {2}
    assert run(quiz(), epochs=2, epochs_reducer="max").plan.finished


def test_errors_over_the_threshold_are_tried_again_and_have_their_exit_code(run: Run) -> None:
    failures["quiz 3"] = 9
    result = run(quiz(), continue_on_fail=True, retry_attempts=2)
    assert result.exit_code == 3
    assert asked == {"quiz 1": 1, "quiz 2": 1, "quiz 3": 3, "quiz 4": 1}


def test_alien_files_are_left_as_they_are(run: Run, folder: Path) -> None:
    folder.mkdir()
    aliens = {"notes.txt": b"mine", "junk.eval": b"\x00\xff", "empty.eval": b"", "torn.eval": b"PK\x03\x04abc"}
    for name, content in aliens.items():
        (folder / name).write_bytes(content)
    assert run(quiz(), clean=True).exit_code == 0
    again = run(quiz(), clean=True)
    assert [alien.name for alien in again.plan.aliens] == sorted(aliens)
    assert {name: (folder / name).read_bytes() for name in aliens} == aliens


def test_a_damaged_log_of_the_set_is_left_alone_too(run: Run) -> None:
    failures["quiz 4"] = 1
    location = run(quiz(), retry_attempts=0, max_samples=1).logs[0].location
    with ZipFile(location) as directory:
        at = next(entry.header_offset for entry in directory.infolist() if entry.filename == "summaries.json")
    with open(location, "r+b") as file:
        file.seek(at + 60)
        file.write(b"\xff" * 20)
    damaged = Path(location).read_bytes()
    result = run(quiz(), clean=True)
    assert (states(result.plan), result.exit_code) == ([("quiz", "new", 0)], 0)
    [alien] = result.plan.aliens
    assert alien.name == Path(location).name and alien.what.startswith("a log of the set that is damaged (")
    assert Path(location).read_bytes() == damaged


def test_nothing_is_deleted_unless_asked_and_then_only_what_stands_elsewhere(run: Run, folder: Path) -> None:
    failures["quiz 3"] = 2
    run(quiz(), max_samples=1)
    before = set(folder.glob("*.eval"))
    assert len(before) == 3
    result = run(quiz(), clean=True)
    assert set(folder.glob("*.eval")) == {Path(result.logs[0].location)}
    assert set(map(Path, result.cleaned)) == before - {Path(result.logs[0].location)}
    assert list(json.loads((folder / "logs.json").read_text())) == [Path(result.logs[0].location).name]
    assert good(result.logs[0]) == [1, 2, 3, 4]


def test_what_somebody_has_made_of_a_log_is_not_deleted(run: Run, folder: Path) -> None:
    failures["quiz 3"] = 1
    first = run(quiz(), retry_attempts=0, max_samples=1).logs[0].location
    last = run(quiz()).logs[0].location
    edited = read_eval_log(first)
    assert edited.samples is not None and edited.samples[0].scores is not None
    edited.samples[0].scores["includes"].value = 0.25
    write_eval_log(edited)
    copy = last.replace(".eval", "-scored.eval")
    write_eval_log(read_eval_log(last), copy)
    result = run(quiz(), clean=True)
    assert (result.plan.finished, result.cleaned) == (True, ())
    assert {Path(first), Path(last), Path(copy)} == set(folder.glob("*.eval"))


def test_scored_copies_never_stand_for_the_run(run: Run, folder: Path) -> None:
    # given a complete set, and copies of its log that were scored with another scorer, and once more with its own
    first = run(quiz()).logs[0].location
    asked.clear()
    score(first, exact(), action="overwrite")
    score(first, includes(), action="overwrite", output=folder / "zzz.eval")
    # then the set is as it was, and the copies are left alone
    result = run(quiz())
    assert (result.logs[0].location, len(result.plan.others)) == (first, 2)
    # when a sample of the log is invalidated, it is run again, whatever the copies say
    invalidate_samples(first, [(2, None)])
    result = run(quiz())
    assert asked == {"quiz 2": 1}
    samples = read_eval_log_samples(result.logs[0].location)
    assert [list(sample.scores or ()) for sample in samples] == [["includes"]] * 4


def test_a_log_that_was_scored_otherwise_is_of_other_work(run: Run) -> None:
    # given a log whose scores were replaced by those of another scorer
    first = run(quiz()).logs[0].location
    score(first, exact(), action="overwrite", overwrite=True)
    # then it is not taken for what the task says now
    with pytest.raises(UsageError, match=r'scorers.1..name: "exact" -> "includes"'):
        run(quiz())
    # but for what the task says once it has that scorer, and so with scores that were made after the run
    asked.clear()
    task = quiz()
    task.scorers = [exact()]
    assert run(task).logs[0].location == first
    late = run(quiz("late"), score=False).logs[0].location
    score(late, includes(), overwrite=True)
    asked.clear()
    assert run(quiz("late")).logs[0].location == late
    assert not asked


def test_two_at_once_are_refused(run: Run, folder: Path) -> None:
    with held_set(str(folder)), pytest.raises(UsageError, match="is being run by"):
        run(quiz())
    assert not asked


def test_a_unit_that_somebody_else_goes_on_with_is_refused(run: Run) -> None:
    failures["quiz 3"] = 1
    first = run([quiz(), quiz("other")], retry_attempts=0)
    asked.clear()
    index = index_eval_log(first.logs[0].location, hold=True)
    with pytest.raises(UsageError, match=r"quiz \(mock/a\) is being run by another process, which has its log"):
        run([quiz(), quiz("other")])
    index.release()
    assert not asked
    assert run([quiz(), quiz("other")]).exit_code == 0


def test_logs_that_wait_to_be_sent_are_sent_first(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spills = folder.parent / "spills"
    spills.mkdir()
    monkeypatch.setenv("PROCTOR_SPILL_DIR", str(spills))
    (spills / "a.eval").touch()
    note = {"path": str(spills / "a.eval"), "location": f"{folder}/a.eval", "reason": "no route to host"}
    (spills / "a.eval.push").write_text(json.dumps(note))
    with pytest.raises(UsageError, match=r"a.eval\), .*`proctor log push --all` first"):
        run(quiz())
    assert not asked
    assert run(quiz(), log_dir=f"{folder}-2").exit_code == 0


def test_a_unit_starts_again_while_another_still_runs(run: Run) -> None:
    came_back = anyio.Event()

    @solver
    def waits() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            with anyio.fail_after(60):
                await came_back.wait()
            return state

        return solve

    @solver
    def tells() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if asked["first 1"]:
                came_back.set()
            return state

        return solve

    failures["first 1"] = 1
    result = run([quiz("first", 1, tells()), quiz("second", 1, waits())], max_tasks=2)
    assert (result.exit_code, asked["first 1"]) == (0, 2)


def test_the_function_says_whether_all_is_complete(folder: Path) -> None:
    failures["quiz 2"] = 1
    options: dict[str, Any] = {"log_dir": str(folder), "display": "none", "retry_attempts": 0}
    success, [log] = eval_set(quiz(), model=model(), **options)
    assert (success, log.status, log.samples) == (False, "error", None)
    success, [log] = eval_set(quiz(), model=model(), **options)
    assert (success, log.status, log.samples) == (True, "success", None)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "--log-dir"),
        ({"log_dir": "x", "retry_attempts": -1}, "retry_attempts=-1"),
        ({"log_dir": "x", "retry_wiat": 1}, "Did you mean 'retry_wait'?"),
        ({"log_dir": "x", "on_change": "ask"}, "none of refuse, new"),
        ({"log_dir": "x", "limit": 0}, "limit=0"),
        ({"log_dir": "x", "log_samples": False}, "leave --no-log-samples out"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], says: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=says.replace("?", r"\?")):
        eval_set(quiz(), model=model(), display="none", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.anyio
async def test_it_is_not_for_code_in_a_loop() -> None:
    with pytest.raises(UsageError, match=r"eval_set\(\) starts an event loop"):
        eval_set(quiz(), model=model(), log_dir="x")


def test_a_spent_budget_says_that_the_set_goes_on(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run([quiz()], max_tokens_total=1, max_samples=1, display="plain")
    told = " ".join(capsys.readouterr().out.split())
    assert "The same eval set goes on from the log" in told and "eval-retry" not in told
