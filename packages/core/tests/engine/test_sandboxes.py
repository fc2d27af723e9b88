"""Samples in sandboxes: what is refused at once, what goes wrong later, what is left, and what is taken away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import odd_sandboxes as odd
import pytest
from anyio import to_thread
from run_status import ask_run

from proctor import Task, eval, eval_set
from proctor.concurrency import Gate
from proctor.contracts import UsageError
from proctor.dataset import IterableDataset, Sample
from proctor.engine import _deadline, _sandboxes
from proctor.log import read_eval_log
from proctor.model import ModelOutput, get_model
from proctor.sandbox import _calls as calls
from proctor.sandbox import _sample as sample_room
from proctor.sandbox import exec_gates, sandbox, sandbox_gates
from proctor.schema import EvalLog, EvalSample
from proctor.scorer import includes
from proctor.solver import Generate, Solver, TaskState, generate, solver, use_tools
from proctor.tool import bash

Run = Callable[..., list[EvalLog]]


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Evaluates in sandboxes that go wrong, and does not wait for long."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for module, name in [(_deadline, "GRACE"), (calls, "OVERDUE"), (calls, "STOPPING"), (sample_room, "STOPPING")]:
        monkeypatch.setattr(module, name, 0.2)
    monkeypatch.setattr(sample_room, "CLEANUP_SECONDS", 0.5)
    odd.reset()

    def evaluate(tasks: Any, model: Any = "mock/model", **options: Any) -> list[EvalLog]:
        options = {
            "display": "none",
            "async_backend": request.param,
            "plugins": ["odd_sandboxes", "absent_sandboxes"],
            **options,
        }
        return eval(tasks, model=model, log_dir=str(tmp_path / "logs"), **options)

    return evaluate


def samples(log: EvalLog) -> list[EvalSample]:
    return list(read_eval_log(log.location).samples or ())


@solver
def runs(*command: str, timeout: float | None = None) -> Solver:
    """Runs a command and says what it wrote."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        result = await sandbox().exec(list(command), timeout=timeout)
        state.output = ModelOutput.from_content("mock/model", result.stdout)
        return state

    return solve


def one(how: str, *solvers: Solver, **more: Any) -> Task:
    sample = Sample(input="q", id=1, target="hi")
    return Task([sample], solver=list(solvers) or runs("echo", "hi"), sandbox=("odd", {"how": how}), **more)


# Before the first request


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("absent", "an_sdk_that_is_not_there"),
        (("odd", {"how": "bad"}), "'boxed'.*: compose.yaml, line 3: 'imag' is no key"),
        (("odd", {"how": "no engine"}), "can't be used: no engine answers"),
    ],
)
@pytest.mark.parametrize("whose", ["task", "sample"])
def test_what_can_not_work_is_refused_before_anything_is_made(
    run: Run, tmp_path: Path, spec: Any, said: str, whose: str
) -> None:
    task = Task([Sample(input="q", sandbox=spec if whose == "sample" else None)], name="boxed")
    with pytest.raises(UsageError, match=said):
        run(task, sandbox=spec if whose == "task" else None)
    assert not (tmp_path / "logs").exists() or not any((tmp_path / "logs").iterdir())


def test_a_mark_that_names_a_folder_is_told_of_and_the_text_can_be_had(run: Run, tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "beside.txt").write_text("beside")
    for content, read, expected in [(".", "a/beside.txt", "beside"), ("data:,.", "a", ".")]:
        task = Task([Sample(input="q", files={"a": content}, target=expected)], runs("cat", read), includes())
        task.folder, task.sandbox = str(tmp_path / "task"), None
        if content == ".":
            with pytest.warns(UserWarning, match=r"'\.' of the file 'a' name a folder: .*write 'data:,\.'"):
                [log] = run(task, sandbox="local")
        else:
            [log] = run(task, sandbox="local")
        [sample] = samples(log)
        assert sample.output.completion == expected
        told = [event for event in sample.events if event.event == "info" and "files_copied" in (event.data or {})]
        assert len(told) == (content == ".")


TASK_FILE = """
from proctor import Task, task
from proctor.dataset import Sample

@task
def boxed():
    own = [Sample(input="q", id=2, sandbox="odd"), Sample(input="q", id=3, sandbox=("odd", {"how": ""}))]
    return Task([Sample(input="q", id=1), *own], sandbox="odd")
"""


def test_the_configuration_beside_the_task_file_is_picked_up(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    folder.mkdir()
    (folder / "boxed.py").write_text(TASK_FILE)
    for name in ("odd.yml", "odd.yaml"):  # the first of the record's is taken
        (folder / name).write_text("")
    [log] = run(str(folder / "boxed.py"), max_samples=1)
    assert [config for config, _ in odd.made] == [str(folder / "odd.yaml"), str(folder / "odd.yaml"), {"how": ""}]
    assert log.eval.sandbox is not None
    assert log.eval.sandbox.config == "odd.yaml"
    assert [each.sandbox and each.sandbox.config for each in samples(log)] == ["odd.yaml", "odd.yaml", {"how": ""}]


# What breaks


def test_a_broken_sandbox_ends_the_sample_and_the_model_does_not_hear_of_it(run: Run) -> None:
    call = ModelOutput.for_tool_call("mock/model", "bash", {"command": "ls"})
    model = get_model("mock/model", custom_outputs=[call, ModelOutput.from_content("mock/model", "done")])
    [log] = run(one("breaks", use_tools(bash()), generate()), model=model, fail_on_error=False)
    [sample] = samples(log)
    assert sample.error is not None
    assert sample.error.message == (
        "SandboxBrokenError('the container is gone; state: exited (137); last lines of its log: out of memory')"
    )
    assert [message.role for message in sample.messages] == ["user", "assistant"]


def test_a_solver_that_swallows_it_does_not_make_a_result_of_it(run: Run) -> None:
    @solver
    def swallows() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            try:
                await sandbox().exec(["ls"])
            except Exception as error:
                state.output = ModelOutput.from_content("mock/model", f"hi {error}")
            return state

        return solve

    [log] = run(one("breaks", swallows(), scorer=includes()), fail_on_error=False)
    [sample] = samples(log)
    assert sample.error is not None
    assert "SandboxBrokenError" in sample.error.message
    assert not sample.scores


@pytest.mark.parametrize("how", ["breaks once", "start fails once"])
def test_it_is_tried_again_in_a_fresh_sandbox(run: Run, how: str) -> None:
    [log] = run(one(how, scorer=includes()), retry_on_error=1)
    [sample] = samples(log)
    assert sample.error is None
    assert sample.output.completion == "hi\n"
    [earlier] = sample.error_retries or ()
    assert earlier.message.startswith("SandboxBrokenError(")
    assert len(odd.made) == 2
    assert [owner.sample for _, owner in odd.made] == ["1", "1"]


def test_a_sandbox_that_can_not_be_started_is_named_so(run: Run) -> None:
    [log] = run(one("start fails"), fail_on_error=False)
    [sample] = samples(log)
    assert sample.error is not None
    assert sample.error.message == (
        "SandboxBrokenError(\"the sandbox 'odd' could not be started: ConnectionResetError: the engine went away\")"
    )


# What does not answer


def test_a_command_that_does_not_end_after_its_timeout_is_left_behind(run: Run) -> None:
    gates: list[Gate] = []

    @solver
    def looks() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            gates.extend([*sandbox_gates(), *exec_gates()])
            return state

        return solve

    [log] = run(one("hangs", looks(), runs("ls", timeout=0.1)), fail_on_error=False)
    [sample] = samples(log)
    assert sample.error is not None
    assert "did not end 'ls' within 0.2 s after its timeout of 0.1 s" in sample.error.message
    assert [(gate.name, gate.held) for gate in gates] == [("odd sandboxes", 0), ("odd execs", 0)]


def test_the_time_limit_holds_over_a_command_that_does_not_answer_and_gives_its_place_back(run: Run) -> None:
    @solver
    def deaf() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            # From its first step on: on a busy machine the limit may be over before the command stands.
            with anyio.CancelScope(shield=True):
                return await runs("ls")(state, generate)

        return solve

    # Tasks of their own, since what comes second must have time, however busy the machine is.
    late, patient = one("hangs", deaf(), time_limit=0.3), one("", runs("ls"), time_limit=60)
    [first], [second] = (samples(log) for log in run([late, patient], max_tasks=1))
    assert first.limit is not None
    assert first.limit.type == "time"
    assert "did not stop" in (first.limit.reason or "")
    assert second.limit is None  # its command came to the place that the other had held
    assert second.error is None


def test_a_sandbox_that_does_not_start_holds_up_a_sample_with_a_time_limit_for_so_long(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sandboxes, "_START", 0.1)
    [log] = run(one("start hangs"), time_limit=0.1, fail_on_error=False)
    [sample] = samples(log)
    assert sample.error is not None
    assert "'odd' of the sample was not there after 0.1 s" in sample.error.message


@pytest.mark.parametrize("how", ["stop hangs", "stop fails"])
def test_what_can_not_be_taken_down_costs_the_sample_nothing(
    run: Run, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "proctor.sandbox"):
        [log] = run(one(how, scorer=includes()))
    assert log.status == "success"
    [sample] = samples(log)
    assert sample.error is None
    assert sample.scores
    assert "proctor sandbox cleanup" in caplog.text


def test_the_gate_of_commands_is_shown_and_can_be_set(run: Run) -> None:
    told: list[Any] = []

    @solver
    def asks() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            told.append(await to_thread.run_sync(lambda: ask_run(ask="set", gate="execs", limit=5, of="odd")))
            told.extend((await to_thread.run_sync(lambda: ask_run(ask="status")))["run"]["gates"])
            return state

        return solve

    run(one("", asks()))
    assert told[0]["changed"] == [{"name": "odd execs", "old": 1, "new": 5}]
    assert {"kind": "execs", "name": "odd execs", "limit": 5, "held": 0, "waiting": 0} in told


# What is left


def test_what_dead_runs_left_is_taken_away_and_said(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    run(one(""), display="plain")
    assert sorted(odd.there) == ["elsewhere", "left2"]  # of another host, and kept by a person
    assert "left behind (odd): left1." in "".join(capfd.readouterr())


def test_a_provider_that_can_not_reap_fails_no_run(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    odd.there["broken"] = odd.there["left1"]
    with caplog.at_level(logging.WARNING, "proctor.sandbox"):
        [log] = run(one(""))
    assert log.status == "success"
    assert "the engine does not answer" in caplog.text


def test_a_dry_run_takes_nothing_away(run: Run) -> None:
    run(one(""), dry_run=True)
    assert "left1" in odd.there


def test_sandboxes_that_are_kept_are_told_of_with_the_ways_in_and_out(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = Task([Sample(input="q", id="s1")], solver=runs("touch", "here"), sandbox="local")
    [log] = run(task, sandbox_cleanup=False, display="plain")
    said = "".join(capfd.readouterr())
    [folder] = tmp_path.glob("proctor-sandbox-*")
    assert (folder / "work" / "here").exists()
    assert f"sample s1, epoch 1 (local {folder.name}, no process)" in said
    assert f"enter:  cd {folder}/work && ${{SHELL:-sh}}" in said
    assert f"remove: proctor sandbox cleanup local {folder.name}" in said
    assert f"proctor sandbox cleanup local {log.eval.run_id}" in said


# How many will want one


def test_a_provider_can_know_how_many_samples_are_to_come(run: Run) -> None:
    def some() -> list[Sample]:
        return [Sample(input="q", id=number, target="hi") for number in range(3)]

    echo, spec = runs("echo", "hi"), ("odd", {"how": ""})
    own = [Sample(input="q", id=n, target="hi", sandbox=("odd", {"how": "", "n": n})) for n in (7, 8)]
    for task, expected in [
        (Task(some(), echo, sandbox=spec, epochs=2), [5, 4, 3, 2, 1, 0]),
        (Task([*some(), *own], echo, sandbox=spec), [4, 3, 2, 0, 0]),
        (Task(IterableDataset(some), echo, sandbox=spec), [None, None, None]),
    ]:
        odd.to_come.clear()
        [log] = run(task, max_samples=1)
        assert log.status == "success"
        assert odd.to_come == expected


def test_what_an_earlier_attempt_has_done_is_not_to_come(run: Run, tmp_path: Path) -> None:
    again = iter([True])

    @solver
    def last_one_fails_once() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if state.sample_id == 2 and next(again, False):
                raise ValueError("not this time")
            return state

        return solve

    samples = [Sample(input="q", id=number) for number in range(3)]
    task = Task(samples, last_one_fails_once(), sandbox=("odd", {"how": ""}), name="three")

    options: dict[str, Any] = {"retry_wait": 0, "max_samples": 1, "plugins": ["odd_sandboxes"], "display": "none"}
    eval_set(task, log_dir=str(tmp_path / "set"), model="mock/model", **options)

    assert odd.to_come == [2, 1, 0, 0]
