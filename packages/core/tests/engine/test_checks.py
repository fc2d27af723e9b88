"""What is refused, or warned of, before the first request."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_runs import answers, sums

from proctor import Task, task
from proctor.contracts import UsageError
from proctor.dataset import IterableDataset, MemoryDataset, Sample
from proctor.model import get_model
from proctor.schema import EvalLog
from proctor.scorer import Score, Target, accuracy, match, model_graded_qa, multi_scorer, scorer
from proctor.solver import Generate, Solver, TaskState, chain, generate, self_critique, solver

Run = Callable[..., list[EvalLog]]


@pytest.fixture
def refused(run: Run) -> Callable[..., str]:
    """Evaluate what is wrong: it is said, and nothing was asked."""

    def check(tasks: Any, **options: Any) -> str:
        asked: list[Any] = []
        model = get_model("mock/model", custom_outputs=lambda *a: asked.append(a) or "x", memoize=False)
        with pytest.raises(UsageError) as raised:
            run(tasks, model=model, **options)
        assert asked == []
        return str(raised.value)

    return check


@pytest.mark.parametrize("value", [1.5, 2.25, float("nan"), float("inf"), -0.5])
def test_a_threshold_is_a_share_or_a_whole_count(refused: Callable[..., str], value: float) -> None:
    assert "fail_on_error" in refused(Task(dataset=sums(2), scorer=match(), fail_on_error=value))
    if value > 0:
        assert "fail_on_error" in refused(Task(dataset=sums(2), scorer=match()), fail_on_error=value)


@pytest.mark.parametrize("value", [0.5, 1.0, 2, 3.0, True, False])
def test_a_share_a_count_and_a_switch_are_thresholds(run: Run, value: float) -> None:
    [log] = run(Task(dataset=sums(2), scorer=match()), model=answers(), fail_on_error=value)
    assert log.status == "success"


def test_a_log_folder_in_the_home_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    [log] = run(Task(dataset=sums(1), scorer=match()), model=answers(), log_dir="~/logs")
    assert Path(log.location).parent.resolve() == (home / "logs").resolve()
    assert os.listdir(here) == []


def test_a_log_folder_as_an_address(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(Task(dataset=sums(1), scorer=match()), model=answers(), log_dir=f"file://{tmp_path}/some%20logs")
    assert os.listdir(tmp_path) == ["some logs"]


def test_a_dry_run_makes_no_folder_but_says_when_it_could_not_be_made(
    run: Run, refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    run(Task(dataset=sums(1)), dry_run=True, log_dir=str(tmp_path / "new" / "logs"))
    assert os.listdir(tmp_path) == ["file"]
    assert "Not a directory" in refused(Task(dataset=sums(1)), dry_run=True, log_dir=str(tmp_path / "file" / "logs"))


def test_a_sandbox_s_configuration_has_to_be_there(refused: Callable[..., str]) -> None:
    said = refused(Task(dataset=sums(1), sandbox=("local", "nofile.yaml"), name="boxed"))
    assert "'boxed'" in said and "'nofile.yaml'" in said
    said = refused(Task(dataset=[Sample(input="q", id="odd", sandbox=("local", "nofile.yaml"))]))
    assert "'odd'" in said and "'nofile.yaml'" in said
    assert "nowhere" in refused(Task(dataset=[Sample(input="q", sandbox="nowhere")]))


def test_what_a_sandbox_does_not_use_is_warned_of(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "compose.yaml"
    config.write_text("")
    for given in (str(config), {"memory": 1}, "memory=1"):
        with pytest.warns(UserWarning, match="takes no configuration"):
            run(Task(dataset=sums(1), sandbox=("local", given)), dry_run=True)


@pytest.mark.parametrize("extra", [{"files": {"a.txt": "hi"}}, {"setup": "true"}])
def test_files_without_a_sandbox_are_warned_of(run: Run, extra: dict[str, Any]) -> None:
    samples = [Sample(input="q", id="plain"), Sample(input="q", id="boxed", **extra)]
    with pytest.warns(UserWarning, match="'boxed'.*no.*--sandbox|'boxed'.*--sandbox"):
        run(Task(dataset=samples), dry_run=True)
    run(Task(dataset=samples), dry_run=True, sandbox="local")


@pytest.mark.parametrize("text", ["x" * 255, "x" * 300, "x" * 4096, "é" * 200, "a\0b", "\ud83d", "", "~nobody"])
def test_no_text_of_a_file_is_taken_for_a_path_with_an_error(run: Run, tmp_path: Path, text: str) -> None:
    from proctor.sandbox import sandbox

    @solver
    def reads() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.metadata["found"] = (await sandbox().read_file("a.txt")) == text
            return state

        return solve

    (tmp_path / "beside.txt").write_text("")
    boxed = Task(dataset=[Sample(input="q", files={"a.txt": text})], solver=reads(), sandbox="local")
    boxed.folder = str(tmp_path)
    [log] = run(boxed, fail_on_error=False)
    [sample] = log.samples or ()
    if "\ud83d" in text:  # no file can hold half a character
        assert sample.error is not None and "OSError" not in sample.error.message
    else:
        assert sample.error is None and sample.metadata["found"]


KEYED = """
from proctor.contracts import ModelProvider
from proctor.hookspecs import hookimpl

@hookimpl
def proctor_model_providers():
    return [ModelProvider(name="keyed", factory=lambda name, **more: 1 / 0, env=(("PROCTOR_TEST_JUDGE_KEY",),))]
"""


def test_a_grader_that_can_t_be_used_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    for graded in (
        model_graded_qa(model="nobody/judge"),
        model_graded_qa(model=["mock/judge", "nobody/judge"]),
        multi_scorer([match(), model_graded_qa(model="nobody/judge")], "mean"),
    ):
        said = refused(Task(dataset=sums(1), scorer=graded))
        assert "'nobody/judge'" in said and "model_graded_qa" in said
    critics: list[Any] = [
        self_critique(model="nobody/critic"),
        [generate(), self_critique(model="nobody/critic")],
        chain(generate(), chain(self_critique(model="nobody/critic"))),
    ]
    for critical in critics:
        assert "'nobody/critic'" in refused(Task(dataset=sums(1), solver=critical))
    (tmp_path / "keyed.py").write_text(KEYED)
    said = refused(
        Task(dataset=sums(1), scorer=model_graded_qa(model="keyed/judge")), plugins=[str(tmp_path / "keyed.py")]
    )
    assert "PROCTOR_TEST_JUDGE_KEY" in said


def test_a_grader_that_is_not_asked_is_not_looked_up(run: Run) -> None:
    graded = model_graded_qa(model="nobody/judge")
    run(Task(dataset=sums(1), scorer=graded), dry_run=True, score=False)
    run(Task(dataset=sums(1), scorer=model_graded_qa(model="mock/judge")), dry_run=True)
    run(Task(dataset=sums(1), scorer=model_graded_qa(model=answers())), dry_run=True)


def test_a_model_argument_of_one_s_own_may_mean_something_else(run: Run) -> None:
    @scorer(metrics=[accuracy()])
    def embedded(model: str = "sentences/all-mini") -> Any:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value="C")

        return score

    with pytest.warns(UserWarning, match="'sentences/all-mini'"):
        [log] = run(Task(dataset=sums(1), scorer=embedded()), model=answers())
    assert log.status == "success"


def test_a_task_function_that_raises_ends_the_command_before_anything_is_sent(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "good.py").write_text("from proctor import Task, task\n@task\ndef good(): return Task()\n")
    (tmp_path / "bad.py").write_text("from proctor import Task, task\n@task\ndef bad(): return Task(1 / 0)\n")
    said = refused([f"{tmp_path}/good.py", f"{tmp_path}/bad.py"], log_dir=str(tmp_path / "logs"))
    assert "'bad'" in said and "bad.py" in said and "ZeroDivisionError" in said
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_dataset_that_breaks_off_fails_its_unit_and_no_other(run: Run, error: type[BaseException]) -> None:
    def make() -> Iterator[Sample]:
        yield from sums(2)
        raise error("the connection is gone")

    logs = run(
        [
            Task(dataset=IterableDataset(make), scorer=match(), name="broken"),
            Task(dataset=sums(5), scorer=match(), name="whole"),
        ],
        model=answers(),
        max_tasks=2,
        max_samples=1,
    )
    assert [log.status for log in logs] == ["error", "success"]
    broken = logs[0]
    assert broken.error is not None and "the connection is gone" in broken.error.message
    assert len(broken.samples or ()) == 2
    assert len(logs[1].samples or ()) == 5


def test_a_sample_that_can_t_be_read_fails_its_unit_and_no_other(run: Run) -> None:
    class Torn(MemoryDataset):
        def read(self, index: int) -> Sample:
            if index == 2:
                raise OSError("the disk is gone")
            return super().read(index)

    logs = run(
        [
            Task(dataset=Torn(list(sums(4))), scorer=match(), name="torn"),
            Task(dataset=sums(3), scorer=match(), name="whole"),
        ],
        model=answers(),
        max_tasks=2,
        max_samples=1,
    )
    assert [log.status for log in logs] == ["error", "success"]
    assert logs[0].error is not None and "the disk is gone" in logs[0].error.message


def test_a_task_that_several_models_share_is_looked_at_once(run: Run) -> None:
    @task
    def boxed() -> Task:
        return Task(dataset=[Sample(input="q", files={"a": "b"})])

    shared = boxed()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(shared, model="mock/a,mock/b", dry_run=True)
    assert len(caught) == 1
