"""A run tells what it does and waits for while it is on, and takes other limits; the solvers here ask their own run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from engine_runs import answers, sums
from run_status import ask_run, until

from proctor import Task
from proctor.concurrency import concurrency
from proctor.contracts import ModelAPI, Retry
from proctor.engine import _status
from proctor.model import GenerateConfig, Model, ModelOutput, get_model
from proctor.monitor import _watchdog, loop_watch
from proctor.schema import EvalLog
from proctor.scorer import includes
from proctor.solver import Generate, Solver, TaskState, generate, solver
from proctor.tool import Tool, execute_tools, tool

Run = Callable[..., list[EvalLog]]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


async def ask_here(**question: Any) -> dict[str, Any]:
    """Put a question to the run that runs this."""
    return await anyio.to_thread.run_sync(lambda: ask_run(**question))


@solver
def asking(ask: Callable[[TaskState], Any]) -> Solver:
    """The first sample asks; all generate."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id == 1:
            await ask(state)
        return await generate(state)

    return solve


def _task(ask: Callable[[TaskState], Any], count: int = 1) -> Task:
    return Task(name="sums", dataset=sums(count), solver=asking(ask), scorer=includes())


def test_a_run_tells_of_itself(run: Run, request: pytest.FixtureRequest) -> None:
    seen: list[dict[str, Any]] = []

    async def ask(state: TaskState) -> None:
        seen.append((await ask_here(ask="status"))["run"])

    [log] = run(_task(ask, 3), answers(), max_samples=1)
    assert log.status == "success"
    [told] = seen
    assert told["run_id"] == log.eval.run_id
    assert told["backend"] == request.node.callspec.params["run"]
    [unit] = told["units"]
    assert (unit["task"], unit["model"], unit["status"], unit["total"]) == ("sums", "mock/model", "running", 3)
    assert unit["location"] == log.location
    gates = {gate["kind"]: gate for gate in told["gates"]}
    assert (gates["tasks"]["held"], gates["tasks"]["limit"]) == (1, 1)
    assert (gates["samples"]["held"], gates["samples"]["limit"]) == (1, 1)
    assert gates["connections"]["name"] == "mock/model"
    assert told["loop"]["stalls"] == []
    assert told["samples_unfinished"] == 1
    [sample] = told["samples"]
    assert (sample["task"], sample["id"], sample["epoch"], sample["attempt"]) == ("sums", 1, 1, 1)
    [operation] = sample["operations"]
    assert operation["kind"] == "code"
    assert operation["what"].startswith("solvers > asking at ")
    assert "test_status.py" in operation["what"]
    assert "ask_here(): return await anyio.to_thread.run_sync(" in operation["what"]


def _waits(told: dict[str, Any]) -> list[str]:
    return sorted(each["kind"] for sample in told["run"]["samples"] for each in sample["operations"])


def test_each_unfinished_sample_says_what_it_waits_for(run: Run) -> None:
    """Three graders' calls at once, a tool that waits at a gate of its own, and a command."""
    seen: list[dict[str, Any]] = []
    done = threading.Event()

    @tool
    def search() -> Tool:
        async def execute(query: str) -> str:
            """Search.

            Args:
                query: the words.
            """
            async with concurrency("my-api", 1):
                await anyio.to_thread.run_sync(done.wait, 60)
            return "found"

        return execute

    @solver
    def branches() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            async with anyio.create_task_group() as tasks:
                for _ in range(2):
                    tasks.start_soon(get_model().generate, "hello")
                call = ModelOutput.for_tool_call("mock/model", "search", {"query": "x"})
                for _ in range(2):
                    tasks.start_soon(execute_tools, [call.message], [search()])
                told: dict[str, Any] = {}
                while _waits(told) != ["gate", "model", "model", "tool", "tool"] if told else True:
                    told = await ask_here(ask="status", all=True)
                seen.append(told["run"])
                done.set()
            return state

        return solve

    async def slowly(*args: Any) -> ModelOutput:
        await anyio.to_thread.run_sync(done.wait, 60)
        return ModelOutput.from_content("mock/model", "1")

    model = _model(slowly)
    [log] = run(Task(name="sums", dataset=sums(1), solver=branches(), scorer=includes()), model)
    assert log.status == "success"
    [sample] = seen[0]["samples"]
    texts = [(each["kind"], each["what"], each.get("attempt")) for each in sample["operations"]]
    assert sorted(texts, key=str) == [
        ("gate", "my-api", None),
        ("model", "mock/model", 1),
        ("model", "mock/model", 1),
        ("tool", "search", None),
        ("tool", "search", None),
    ]


class _Api(ModelAPI):
    """A provider whose replies a test makes."""

    def __init__(self, reply: Callable[..., Any]) -> None:
        super().__init__("model")
        self._reply = reply

    def connection_key(self) -> str:
        return "test"

    async def generate(self, *args: Any) -> ModelOutput:
        output: ModelOutput = await self._reply(*args)
        return output

    def classify(self, error: Exception) -> Retry:
        return Retry("rate_limit", after=300.0)


def _model(reply: Callable[..., Any], **config: Any) -> Model:
    return Model(_Api(reply), GenerateConfig(**config), "mock/model")


def test_a_back_off_says_its_end_and_why(run: Run) -> None:
    seen: list[dict[str, Any]] = []

    async def refuse(*args: Any) -> ModelOutput:
        raise ConnectionRefusedError("slow down, key sk-abcdefghijklmnopqrstuvwxyz012345")

    @solver
    def impatient() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(generate, state)
                told: dict[str, Any] = {}
                while not told or _waits(told) != ["retry"]:
                    told = await ask_here(ask="status")
                seen.append(told["run"])
                tasks.cancel_scope.cancel()
            return state

        return solve

    run(Task(dataset=sums(1), solver=impatient(), scorer=includes()), _model(refuse))
    [told] = seen
    [operation] = told["samples"][0]["operations"]
    assert operation["attempt"] == 2
    assert 0 < operation["left"] <= 300
    assert operation["error"].startswith("ConnectionRefusedError: slow down")
    assert told["retries"][0]["kinds"] == {"rate_limit": 1}
    assert told["retries"][0]["last_error"].startswith("ConnectionRefusedError: slow down")
    assert "sk-abcdefgh" not in json.dumps(told)
    line = next(gate for gate in told["gates"] if gate["kind"] == "connections")
    assert line["backing_off"] == 1
    assert line["adaptive"]["refusals"] == 1


def test_gates_can_be_set_while_the_run_is_on(run: Run) -> None:
    changed: list[dict[str, Any]] = []

    async def ask(state: TaskState) -> None:
        async with concurrency("my-api", 2):
            for gate in ("connections", "samples", "tasks", "subprocesses", "sandboxes", "my-api"):
                answer = await ask_here(ask="set", gate=gate, limit=7)
                changed.append(answer)
            async with concurrency("my-api", 2):  # what was set by hand is no other number in the code
                told = (await ask_here(ask="status"))["run"]
        changed.append({gate["kind"]: gate["limit"] for gate in told["gates"]})

    [log] = run(_task(ask, 9), answers(), max_connections=1)
    assert log.status == "success"
    names = [change["changed"][0]["name"] for change in changed[:-1]]
    assert names == ["mock/model", "samples of sums (mock/model)", "tasks", "subprocesses", "sandboxes", "my-api"]
    assert [change["changed"][0]["new"] for change in changed[:-1]] == [7] * 6
    assert changed[0]["changed"][0]["old"] == 1
    assert changed[-1] == dict.fromkeys(("tasks", "samples", "connections", "subprocesses", "named"), 7)
    assert log.stats is not None
    [moved] = log.stats.connection_limit_history or []
    assert (moved["old_limit"], moved["new_limit"], moved["reason"]) == (1, 7, "manual")


def test_a_limit_that_was_set_by_hand_is_given_back_to_the_controller(run: Run) -> None:
    seen: list[dict[str, Any]] = []

    async def answer(*args: Any) -> ModelOutput:
        return ModelOutput.from_content("mock/model", "4")

    async def ask(state: TaskState) -> None:
        for limit in (7, "auto"):
            seen.append(await ask_here(ask="set", gate="connections", limit=limit))
            told = (await ask_here(ask="status"))["run"]
            seen.append(next(gate for gate in told["gates"] if gate["kind"] == "connections"))

    run(_task(ask), _model(answer), adaptive_connections={"min": 1, "start": 5, "max": 9})
    first, fixed, second, moving = seen
    assert first["changed"] == [{"name": "mock/model", "old": 5, "new": 7}]
    assert fixed["limit"] == 7 and "adaptive" not in fixed
    assert second["changed"] == [{"name": "mock/model", "old": 7, "new": 7}]
    assert (moving["limit"], moving["adaptive"]["min"], moving["adaptive"]["max"]) == (7, 1, 9)


def test_a_gate_with_the_name_of_a_usual_one_is_named_apart(run: Run) -> None:
    seen: list[Any] = []

    async def ask(state: TaskState) -> None:
        async with concurrency("tasks", 2):
            seen.append(await ask_here(ask="set", gate="named:tasks", limit=9))
            told = (await ask_here(ask="status"))["run"]
        seen.append({gate["name"]: gate["limit"] for gate in told["gates"]})

    run(_task(ask), answers())
    assert seen[0]["changed"] == [{"name": "tasks", "old": 2, "new": 9}]
    assert (seen[1]["tasks"], seen[1]["named:tasks"]) == (1, 9)


@pytest.mark.parametrize("gate", ["connections", "samples"])
def test_more_samples_start_at_once_when_a_limit_is_raised(run: Run, gate: str) -> None:
    """Three samples wait for each other; two at once would wait for ever."""
    here = 0
    together = None

    @solver
    def meets() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            nonlocal here, together
            together = together or anyio.Event()
            here += 1
            if here == 1:
                assert (await ask_here(ask="set", gate=gate, limit=3))["ok"]
            if here == 3:
                together.set()
            with anyio.fail_after(60):
                await together.wait()
            return state

        return solve

    option = {"max_connections": 1} if gate == "connections" else {"max_samples": 1}
    [log] = run(Task(dataset=sums(3), solver=meets(), scorer=includes()), answers(), **option)
    assert log.status == "success"


def test_more_tasks_start_at_once_when_their_number_is_raised(run: Run) -> None:
    here = 0
    together = None

    async def meet(state: TaskState) -> None:
        nonlocal here, together
        together = together or anyio.Event()
        here += 1
        if here == 1:
            told = (await ask_here(ask="status"))["run"]
            assert next(gate["waiting"] for gate in told["gates"] if gate["kind"] == "tasks") == 2
            assert (await ask_here(ask="set", gate="tasks", limit=3))["ok"]
        if here == 3:
            together.set()
        with anyio.fail_after(60):
            await together.wait()

    tasks = [Task(name=name, dataset=sums(1), solver=asking(meet), scorer=includes()) for name in "abc"]
    logs = run(tasks, answers(), max_tasks=1)
    assert [log.status for log in logs] == ["success"] * 3


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({"ask": "set", "gate": "nope", "limit": 3}, "no gate 'nope': connections, samples"),
        ({"ask": "set", "gate": "tasks", "limit": 0}, "at least 1, not 0"),
        ({"ask": "set", "gate": "tasks", "limit": "auto"}, "only connections follow"),
        ({"ask": "set", "gate": "connections", "limit": "auto"}, "are a fixed number in this run"),
        ({"ask": "set", "gate": "tasks", "limit": "3"}, "at least 1, not '3'"),
        (
            {"ask": "set", "gate": "connections", "limit": 3, "of": "a/b"},
            "no model 'a/b' is in use; there are mock/model",
        ),
        ({"ask": "set", "gate": "samples", "limit": 3, "of": "other"}, "no task 'other'"),
        ({"ask": "set", "gate": "sandboxes", "limit": 3, "of": "docker"}, "no sandbox provider 'docker'"),
        ({"ask": "set", "gate": "execs", "limit": 3, "of": "docker"}, "no commands of the sandbox provider 'docker'"),
        ({"ask": "sing"}, "not 'sing'"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, question: dict[str, Any], says: str) -> None:
    seen: list[dict[str, Any]] = []

    async def ask(state: TaskState) -> None:
        seen.append(await ask_here(**question))

    run(_task(ask), answers())
    assert seen[0]["ok"] is False
    assert says in seen[0]["error"]


def test_a_run_that_stands_still_says_where_and_changes_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_watchdog, "BEAT", 0.02)
    monkeypatch.setattr(_watchdog, "STALL", 0.2)
    monkeypatch.setattr(_status, "_LOOP", 0.2)
    seen: list[dict[str, Any]] = []

    def look_from_outside() -> None:
        seen.append(until(lambda: (told := ask_run(ask="status")["run"])["loop"]["stands_in"] and told))
        seen.append(ask_run(ask="set", gate="tasks", limit=9))

    async def block(state: TaskState) -> None:
        thread = threading.Thread(target=look_from_outside)
        thread.start()
        thread.join()

    async def ask(state: TaskState) -> None:
        await anyio.sleep(0.1)
        await block(state)
        seen.append((await ask_here(ask="status"))["run"])

    [log] = run(_task(ask), answers())
    stuck, refused, after = seen
    assert "test_status.py" in stuck["loop"]["stands_in"]
    assert "thread.join()" in stuck["loop"]["stands_in"]
    assert stuck["loop"]["lag"] > 0.1
    assert refused["stuck"]
    assert "nothing was changed" in refused["error"]
    assert "thread.join()" in refused["error"]
    assert next(gate["limit"] for gate in after["gates"] if gate["kind"] == "tasks") == 1
    assert log.eval.metadata is not None
    [stall] = log.eval.metadata["proctor"]["loop_stalls"]
    assert stall["code"] == "thread.join()"
    assert stall["count"] == 1


def _block() -> None:
    """Hold the loop until that is noticed, and longer than any timeout here."""
    watch = loop_watch()
    assert watch is not None
    deadline = time.monotonic() + 60
    while (watch.state().place is None or watch.state().lag < 0.4) and time.monotonic() < deadline:
        time.sleep(0.05)


def test_blocking_code_is_told_of_on_the_screen(
    run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_watchdog, "BEAT", 0.02)
    monkeypatch.setattr(_watchdog, "STALL", 0.1)

    async def block(state: TaskState) -> None:
        _block()

    run(_task(block), answers(), display="plain")
    said = capfd.readouterr()
    assert "stood still for" in said.out + said.err
    assert "_block(): time.sleep(0.05)" in said.out + said.err
    assert "to_thread" in said.out + said.err


def test_a_time_out_is_not_blamed_on_the_provider_when_the_loop_stood_still(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_watchdog, "BEAT", 0.02)
    monkeypatch.setattr(_watchdog, "STALL", 0.1)

    async def reply(*args: Any) -> ModelOutput:
        _block()
        await anyio.sleep(60)
        raise AssertionError("the time-out comes first")

    async def fine(state: TaskState) -> None:
        pass

    [log] = run(_task(fine), _model(reply, attempt_timeout=0.3, max_retries=0))
    assert log.samples is not None and log.samples[0].error is not None
    message = log.samples[0].error.message
    assert "no answer within 0.3 s of sending, but the event loop stood still for " in message
    assert "_block(): time.sleep(0.05)" in message


def test_a_run_without_a_socket_is_a_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "proctor").write_text("a file is in the way")

    async def fine(state: TaskState) -> None:
        pass

    [log] = run(_task(fine), answers())
    assert log.status == "success"


def test_nothing_is_left_of_a_run(run: Run, tmp_path: Path) -> None:
    run(Task(dataset=sums(3), solver=generate(), scorer=includes()), answers())
    folder = tmp_path / "proctor"
    assert not folder.exists() or list(folder.iterdir()) == []
