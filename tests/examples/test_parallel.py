"""What users write to do several things at once, against a model server, on both back-ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from meeting import Meeting, PageServer

from proctor import eval
from proctor.log import list_eval_logs, read_eval_log
from proctor.schema import EvalLog
from proctor_testkit import FakeOpenAI

EXAMPLES = Path(__file__).parents[2] / "examples" / "parallel"
UNIT_COUNTER = Path(__file__).parents[1] / "support" / "unit_counter.py"
MODEL = "openai/gpt-4o-mini"

Load = Callable[[str], ModuleType]


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1f2e3d4c5b6a")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


@pytest.fixture
def options(options: dict[str, Any]) -> dict[str, Any]:
    """A request that fails here is a fault of the test: it is not sent again for minutes."""
    return options | {"max_retries": 0}


@pytest.fixture
def counted(options: dict[str, Any], tmp_path: Path) -> tuple[dict[str, Any], Callable[[], list[int]]]:
    """Options of a run whose live units are counted, and the counts: one at each start of a unit."""
    file = tmp_path / "units.txt"
    options |= {"plugins": [str(UNIT_COUNTER)], "observers": [f"unit-counter:file={file}"]}
    return options, lambda: [int(word) for word in file.read_text().split()]


def accuracy(log: EvalLog) -> float:
    assert log.status == "success", log.error
    assert log.results is not None
    return float(log.results.scores[0].metrics["accuracy"].value)


def error_of(log: EvalLog) -> str:
    """What the log's one sample failed with."""
    assert log.samples is not None
    [sample] = log.samples
    assert sample.error is not None
    return sample.error.message


# Three graders


GRADERS = ("openai/strict", "openai/kind", "openai/kinder")


def graded(server: FakeOpenAI, samples: int) -> Meeting:
    """Answers of a model and its three graders, which are held back until all of them were asked."""
    meeting = Meeting(3 * samples)

    async def reply(body: dict[str, Any]) -> dict[str, Any]:
        prompt = body["messages"][-1]["content"]
        if body["model"] == "gpt-4o-mini":
            return server.answer("Canberra." if "Australia" in prompt else "Toronto.")
        await meeting.attend((body["model"], prompt))
        agrees = body["model"] != "strict" and "Answer: Canberra" in prompt
        return server.answer("YES" if agrees else "NO")

    server.reply(reply)
    return meeting


@pytest.mark.parametrize(
    ("name", "backend"),
    [("parallel/graders", "asyncio"), ("parallel/graders_anyio", "asyncio"), ("parallel/graders_anyio", "trio")],
)
def test_three_graders_are_asked_at_once_and_the_majority_counts(
    example: Load, server: FakeOpenAI, options: dict[str, Any], name: str, backend: str
) -> None:
    meeting = graded(server, samples=1)

    [log] = eval(example(name).capitals(graders=GRADERS), model=MODEL, limit=1, async_backend=backend, **options)

    assert accuracy(log) == 1.0
    assert meeting.met
    assert server.peak == 3
    assert log.samples is not None
    assert (log.samples[0].scores or {})["majority"].explanation == "2 of 3 graders agree"


def test_the_graders_of_several_samples_are_asked_at_once_too(
    example: Load, server: FakeOpenAI, options: dict[str, Any]
) -> None:
    meeting = graded(server, samples=2)

    [log] = eval(example("parallel/graders_anyio").capitals(graders=GRADERS), model=MODEL, **options)

    assert accuracy(log) == 0.5
    assert meeting.met
    assert server.peak == 6


# Ten pages


@pytest.mark.parametrize(
    ("name", "backend"),
    [("parallel/pages", "asyncio"), ("parallel/pages_anyio", "asyncio"), ("parallel/pages_anyio", "trio")],
)
def test_ten_pages_are_fetched_two_at_a_time(
    example: Load, server: FakeOpenAI, options: dict[str, Any], name: str, backend: str
) -> None:
    server.reply(lambda body: server.answer("Page 7" if "Page 7" in body["messages"][-1]["content"] else "?"))

    with PageServer(together=2).serving() as web:
        [log] = eval(example(name).pages(url=web.url), model=MODEL, async_backend=backend, **options)

    assert accuracy(log) == 1.0
    assert sorted(web.paths) == sorted(f"/{number}" for number in range(1, 11))
    assert web.peak == 2


def test_the_gate_holds_for_all_samples_together(example: Load, server: FakeOpenAI, options: dict[str, Any]) -> None:
    with PageServer(together=2).serving() as web:
        [log] = eval(example("parallel/pages_anyio").pages(url=web.url), model=MODEL, epochs=4, **options)

    assert log.status == "success"
    assert len(web.paths) == 40
    assert web.peak == 2


# A tool that runs a command


def are_gone(processes: list[str]) -> bool:
    """Whether they ended; a zombie, that a container's first process did not ask for, has."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(processes)], capture_output=True, text=True, timeout=60)
    return all(state.startswith("Z") for state in done.stdout.split())


def looks(server: FakeOpenAI, folder: Path) -> None:
    """A model that asks for a list of ``folder`` and answers with what it gets."""

    def reply(body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return server.answer(last["content"])
        return server.answer(calls=[("list_files", {"folder": str(folder)})])

    server.reply(reply)


def test_a_tool_lists_files_by_a_command(
    example: Load, server: FakeOpenAI, options: dict[str, Any], tmp_path: Path, backend: str
) -> None:
    (tmp_path / "notes.txt").touch()
    looks(server, tmp_path)
    task = example("parallel/list_files").read_the_folder(folder=str(tmp_path), file="notes.txt")

    [log] = eval(task, model=MODEL, async_backend=backend, **options)

    assert accuracy(log) == 1.0


def test_a_command_that_takes_too_long_is_gone_when_the_model_is_told(
    example: Load,
    server: FakeOpenAI,
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
) -> None:
    slow = tmp_path / "ls"
    slow.write_text(f"#!/bin/sh\nsleep 600 &\necho $$ $! > {tmp_path}/processes\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    looks(server, tmp_path)
    task = example("parallel/list_files").read_the_folder(folder=str(tmp_path), file="more than 1", seconds=1)

    [log] = eval(task, model=MODEL, async_backend=backend, **options)

    assert accuracy(log) == 1.0
    assert are_gone((tmp_path / "processes").read_text().split())


def test_a_folder_that_is_not_there_is_told_to_the_model(
    example: Load, server: FakeOpenAI, options: dict[str, Any], tmp_path: Path, backend: str
) -> None:
    looks(server, tmp_path / "nowhere")
    task = example("parallel/list_files").read_the_folder(file="nowhere")

    [log] = eval(task, model=MODEL, async_backend=backend, **options)

    assert accuracy(log) == 1.0


# asyncio's own calls on trio


def test_asyncio_code_is_told_on_trio_what_to_write(server: FakeOpenAI, tmp_path: Path) -> None:
    """In a process of its own: asyncio's coroutines that nobody awaits would be told of in some later test."""
    with PageServer(together=1).serving() as web:
        graded = _on_trio(tmp_path / "graded", "graders.py", f"graders={','.join(GRADERS)}")
        fetched = _on_trio(tmp_path / "fetched", "pages.py", f"url={web.url}")

    for log, name in ((graded, "graders.py"), (fetched, "pages.py")):
        said = error_of(log)
        assert "asyncio.gather" in said and name in said
        assert "write proctor.util.collect(), which runs on both" in said
        assert "--async-backend asyncio" in said


def _on_trio(log_dir: Path, file: str, argument: str) -> EvalLog:
    words = ["--model", MODEL, "--limit", "1", "--max-retries", "0", "--no-fail-on-error", "--display", "none"]
    words += ["--async-backend", "trio", "--log-dir", str(log_dir), "-T", argument]
    subprocess.run([sys.executable, "-m", "proctor", "eval", str(EXAMPLES / file), *words], timeout=100)
    [info] = list_eval_logs(str(log_dir))
    return read_eval_log(info.name)


# Many units


def test_six_temperatures_on_two_models_are_twelve_logs_and_at_most_five_units_at_once(
    example: Load,
    server: FakeOpenAI,
    counted: tuple[dict[str, Any], Callable[[], list[int]]],
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
) -> None:
    options, counts = counted
    meeting = Meeting(5)

    async def reply(body: dict[str, Any]) -> dict[str, Any]:
        await meeting.attend((body["model"], body["temperature"]))
        return server.answer("yellow and green")

    server.reply(reply)
    sweep = example("parallel/temperatures")
    monkeypatch.setattr(sweep, "eval", lambda *a, **k: eval(*a, **{**k, **options, "async_backend": backend}))

    logs = sweep.main(["--model", "openai/gpt-4o-mini,openai/gpt-4.1-mini"])

    assert [accuracy(log) for log in logs] == [1.0] * 12
    assert sorted((log.eval.model, log.plan.config.temperature or 0.0) for log in logs) == [
        (model, temperature)
        for model in ("openai/gpt-4.1-mini", "openai/gpt-4o-mini")
        for temperature in sweep.TEMPERATURES
    ]
    assert meeting.met
    assert len(counts()) == 12
    assert max(counts()) == 5


def test_a_folder_of_tasks_is_run_five_at_a_time(
    server: FakeOpenAI, counted: tuple[dict[str, Any], Callable[[], list[int]]], tmp_path: Path, backend: str
) -> None:
    options, counts = counted
    meeting = Meeting(5)

    async def reply(body: dict[str, Any]) -> dict[str, Any]:
        await meeting.attend(body["messages"][-1]["content"])
        return server.answer("4 Lima puppy iron Pacific Jupiter")

    server.reply(reply)
    env = os.environ | {
        "PROCTOR_ASYNC_BACKEND": backend,
        "PROCTOR_LOG_DIR": options["log_dir"],
        "PROCTOR_PLUGINS": options["plugins"][0],
        "PROCTOR_OBSERVERS": options["observers"][0],
    }

    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "proctor",
            "eval",
            ".",
            "--max-tasks=5",
            "--model",
            MODEL,
            "--max-samples=1",
            "--max-retries=0",
        ],
        cwd=EXAMPLES / "folder",
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    logs = [read_eval_log(info.name) for info in list_eval_logs(options["log_dir"])]
    assert sorted(log.eval.task for log in logs) == ["animals", "capitals", "elements", "oceans", "planets", "sums"]
    assert [accuracy(log) for log in logs] == [0.5] * 6
    assert meeting.met
    assert len(counts()) == 6
    assert max(counts()) == 5
