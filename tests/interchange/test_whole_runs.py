"""Logs of whole runs of the engine, read by the peer: what a person gets who opens our log in its tools."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from child_processes import running
from deadlines import killed_after

from proctor import Epochs, Task, eval
from proctor.dataset import Sample
from proctor.log import read_eval_log
from proctor.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText, ModelOutput, get_model
from proctor.scorer import Score, Target, accuracy, includes, match, scorer, stderr
from proctor.solver import Generate, Solver, TaskState, generate, solver, use_tools
from proctor.tool import Tool, ToolError, bash, tool

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
    "hgGAWjR9awAAAABJRU5ErkJggg=="
)


@tool
def add() -> Tool:
    async def execute(x: int, y: int) -> int:
        """Add two numbers.

        Args:
            x: First number.
            y: Second number.
        """
        if x < 0:
            raise ToolError("no negative numbers")
        return x + y

    return execute


@solver
def fails_on(id: str) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id == id:
            raise ValueError(f"boom {id}")
        return await generate(state)

    return solve


@scorer(metrics=[accuracy(), stderr()])
def unsure() -> Any:
    async def score(state: TaskState, target: Target) -> Score:
        return Score.unscored("refusal") if state.sample_id == "b" else Score(value=1, metadata={"nested": {"a": None}})

    return score


def _calls(*calls: tuple[str, dict[str, Any]], then: str = "ANSWER: 3") -> list[ModelOutput]:
    return [ModelOutput.for_tool_call("model", *call) for call in calls] + [ModelOutput.from_content("model", then)]


def _samples() -> list[Sample]:
    return [Sample(input=f"Say {name}", target="Default", id=name, metadata={"n": 1}) for name in "abc"]


def _media() -> list[Sample]:
    content = [ContentText(text="What is this?" + " Look closely." * 20), ContentImage(image=PIXEL)]
    return [Sample(input=[ChatMessageSystem(content="Be brief."), ChatMessageUser(content=content)], target="x", id=1)]


def _cases() -> dict[str, dict[str, Any]]:
    tools = _calls(("add", {"x": 1, "y": 2}), ("add", {"x": -1, "y": 2}), ("nothing", {}), ("bash", {"cmd": "echo hi"}))
    scripted = get_model("mock/model", custom_outputs=tools, memoize=False)
    looping = get_model(
        "mock/model", custom_outputs=lambda *_: ModelOutput.for_tool_call("m", "add", {"x": 1, "y": 1}), memoize=False
    )
    use = [use_tools([add(), bash()]), generate()]
    one = [Sample(input="Add", target="3", id="tools")]
    return {
        "plain": {"tasks": Task(dataset=_samples(), scorer=[includes(), match()])},
        "epochs": {"tasks": Task(dataset=_samples(), scorer=includes(), epochs=Epochs(3, ["mean", "pass_at_2"]))},
        "tools": {"tasks": Task(dataset=one, solver=use, scorer=match(), sandbox="local"), "model": scripted},
        "limit": {
            "tasks": Task(dataset=one, solver=use, scorer=match(), message_limit=7, sandbox="local"),
            "model": looping,
        },
        "errors": {"tasks": Task(dataset=_samples(), solver=fails_on("b"), scorer=includes()), "fail_on_error": 0.5},
        "failed": {"tasks": Task(dataset=_samples(), solver=fails_on("a"), scorer=includes())},
        "retried": {"tasks": Task(dataset=_samples(), solver=fails_on("b"), scorer=includes()), "retry_on_error": 1},
        "unscored": {"tasks": Task(dataset=_samples(), scorer=unsure())},
        "media": {"tasks": Task(dataset=_media(), scorer=includes())},
        "roles": {
            "tasks": Task(dataset=_samples(), scorer=includes()),
            "model_roles": {"grader": "mock/judge"},
            "tags": ["a"],
            "metadata": {"k": [1, None]},
            "temperature": 0.5,
        },
        "no samples": {"tasks": Task(dataset=_samples(), scorer=includes()), "log_samples": False},
        "no scores": {"tasks": Task(dataset=_samples(), scorer=includes()), "score": False},
    }


@pytest.mark.filterwarnings("ignore:.*local.*")  # the sandbox says that it confines nothing
@pytest.mark.parametrize("format", ["eval", "json"])
@pytest.mark.parametrize("case", list(_cases()))
def test_the_peer_reads_a_run_as_its_own(peer: Any, tmp_path: Path, case: str, format: Any) -> None:
    options = _cases()[case]
    options = {"model": "mock/model", "display": "none", "log_dir": str(tmp_path), "log_format": format, **options}
    tasks, model = options.pop("tasks"), options.pop("model")
    [ours] = eval(tasks, model=model, **options)
    theirs = peer.ask("full", path=ours.location)
    assert theirs["status"] == ours.status
    assert peer.ask("header", path=ours.location)["status"] == ours.status
    count = len(ours.samples or ())
    assert len(theirs.get("samples") or []) == len(peer.ask("summaries", path=ours.location)) == count
    for mine, one in zip(ours.samples or (), theirs.get("samples") or [], strict=True):
        assert (one["id"], one["epoch"], one["uuid"]) == (mine.id, mine.epoch, mine.uuid)
        assert len(one["messages"]) == len(mine.messages)
        assert [event["event"] for event in one["events"]] == [event.event for event in mine.events]
        models = [event for event in one["events"] if event["event"] == "model"]
        assert all(event["input"] for event in models)
        assert peer.ask("sample", path=ours.location, id=mine.id, epoch=mine.epoch)["uuid"] == mine.uuid
    if ours.results is not None:
        assert [score["name"] for score in theirs["results"]["scores"]] == [each.name for each in ours.results.scores]
        mine_metrics = [metric.value for each in ours.results.scores for metric in each.metrics.values()]
        their_metrics = [m["value"] for each in theirs["results"]["scores"] for m in each["metrics"].values()]
        assert json.dumps(their_metrics) == json.dumps(mine_metrics)
    if ours.status == "success" and count:
        assert len(peer.ask("samples", path=ours.location)) == count


TASK = """
import anyio
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import solver

@solver
def answers_some():
    async def solve(state, generate):
        if state.sample_id > 200:
            print("REACHED", flush=True)
            await anyio.sleep_forever()
        return await generate(state)
    return solve

@task
def some():
    samples = [Sample(input=f"q{n}", target="Default", id=n) for n in range(1, 301)]
    return Task(dataset=samples, solver=answers_some(), scorer=includes())
"""


@pytest.mark.parametrize("format", ["eval", "json"])
def test_a_run_killed_in_the_middle_is_read_by_both_after_recovery(peer: Any, tmp_path: Path, format: str) -> None:
    (tmp_path / "some.py").write_text(TASK)
    words = "eval some.py --model mock/model --max-samples 4 --display none --log-dir logs --log-format"
    command = [sys.executable, "-m", "proctor", *words.split(), format]
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process, killed_after(process):
        assert process.stdout is not None
        assert "REACHED" in process.stdout.readline()
        [file] = (tmp_path / "logs").iterdir()
        while len(read_eval_log(str(file)).samples or ()) < 100:  # the writer works a moment behind
            assert process.poll() is None
        process.kill()
    acknowledged = {sample.id for sample in read_eval_log(str(file)).samples or ()}
    command = [sys.executable, "-m", "proctor", "log", "recover", str(file), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    [recovered] = (tmp_path / "logs").glob("*-recovered.*")
    theirs = peer.ask("full", path=recovered)
    ours = read_eval_log(str(recovered))
    assert theirs["status"] == ours.status == "error"
    ids = {sample["id"] for sample in theirs["samples"]}
    assert acknowledged <= ids == {sample.id for sample in ours.samples or ()}
    assert ours.results is not None and ours.results.scores[0].metrics["accuracy"].value == 1.0
