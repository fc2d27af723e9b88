"""A plugin that knows asyncio only: it works there; on trio one sentence says what to do before anything starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from proctor import Task, eval, eval_async
from proctor.contracts import UsageError
from proctor.dataset import Sample
from proctor.model import get_model
from proctor.plugins import running_backend
from proctor.schema import EvalLog
from proctor.scorer import Score, Scorer, Target, accuracy, match, model_graded_qa, scorer
from proctor.solver import TaskState

Run = Callable[..., list[EvalLog]]


@pytest.fixture
def run(put: Callable[..., list[Path]], tmp_path: Path) -> Run:
    put("asyncio_only")

    def run(task: Task | None = None, **options: Any) -> list[EvalLog]:
        options = {"model": "mock/model", "display": "none", "log_dir": str(tmp_path / "logs"), **options}
        return eval(task or Task(dataset=[Sample(input="2 + 2", target="4")], scorer=match()), **options)

    return run


@pytest.fixture
def refused(run: Run, tmp_path: Path) -> Callable[..., str]:
    """The one sentence; no log was begun and the library was not imported."""

    def check(task: Task | None = None, **options: Any) -> str:
        with pytest.raises(UsageError) as raised:
            run(task, async_backend="trio", **options)
        assert not (tmp_path / "logs").exists()
        assert "acme_asyncio.client" not in sys.modules
        return str(raised.value)

    return check


WAYS: dict[str, dict[str, Any]] = {
    "model": {"model": "loopbound/one"},
    "one of several models": {"model": "mock/model,loopbound/one"},
    "role": {"model_roles": {"grader": "loopbound/one"}},
    "grader": {"task": Task(dataset=[Sample(input="q")], scorer=model_graded_qa(model="loopbound/one"))},
    "sandbox": {"sandbox": "loopbound"},
    "sandbox of a sample": {"task": Task(dataset=[Sample(input="q", sandbox="loopbound")])},
    "observer": {"observers": ["loopbound"]},
}


@pytest.mark.parametrize("way", WAYS)
def test_on_trio_it_is_refused_and_on_asyncio_it_runs(refused: Callable[..., str], run: Run, way: str) -> None:
    said = refused(**WAYS[way])
    assert "'loopbound' runs on asyncio only, and the back-end is trio: use --async-backend asyncio" in said
    assert said.count("\n") == 0

    for log in run(**WAYS[way]):
        assert log.status == "success", log.error


def test_a_display_gives_way_to_the_core_s_own(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="the display") as warned:
        [log] = run(async_backend="trio", display="loopbound")

    [warning] = warned
    assert str(warning.message) == (
        "the display 'loopbound' runs on asyncio only, and the back-end is trio: 'plain' shows the run instead"
    )
    assert log.status == "success"
    shown = capsys.readouterr().out
    assert "accuracy" in shown and "loop-bound" not in shown

    run(display="loopbound")
    assert "the loop-bound display" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--model", "loopbound/one"), 2, "'loopbound' runs on asyncio only, and the back-end is trio"),
        (("--model", "mock/m", "--observer", "loopbound"), 2, "'loopbound' runs on asyncio only"),
        (("--model", "mock/m", "--display", "loopbound"), 0, "'plain' shows the run instead"),
    ],
)
def test_the_command_says_it_in_one_line(tmp_path: Path, options: tuple[str, ...], code: int, says: str) -> None:
    (tmp_path / "quiz.py").write_text(
        "from proctor import Task, task\nfrom proctor.dataset import Sample\n"
        "@task\ndef quiz():\n    return Task(dataset=[Sample(input='2 + 2')])\n"
    )
    fixture = Path(__file__).parents[1] / "fixtures" / "plugins" / "asyncio_only"
    path = os.pathsep.join([str(fixture), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "proctor", "eval", "quiz.py", *options],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "PROCTOR_ASYNC_BACKEND": "trio"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert sum(says in line for line in done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_model_that_a_scorer_makes_by_itself_fails_its_sample_with_the_same_sentence(run: Run) -> None:
    @scorer(metrics=[accuracy()])
    def asks() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value=(await get_model("loopbound/judge").generate("?")).completion)

        return score

    task = Task(dataset=[Sample(input="q")], scorer=asks())
    [log] = run(task, async_backend="trio", fail_on_error=False)
    assert log.samples is not None and log.samples[0].error is not None
    assert "'loopbound' runs on asyncio only" in log.samples[0].error.message


@pytest.mark.anyio
async def test_a_run_inside_a_loop_uses_that_loop_s_back_end(
    put: Callable[..., list[Path]], tmp_path: Path, anyio_backend: str
) -> None:
    put("asyncio_only")
    evaluate = partial(eval_async, Task(dataset=[Sample(input="q")]), display="none", log_dir=str(tmp_path))
    other = "asyncio" if anyio_backend == "trio" else "trio"

    await anyio.lowlevel.checkpoint()
    assert running_backend() == anyio_backend
    [log] = await evaluate(model="mock/model", async_backend=anyio_backend)
    assert log.status == "success"
    with pytest.raises(UsageError, match=f"async_backend='{other}' was asked for inside of a loop of {anyio_backend}"):
        await evaluate(model="mock/model", async_backend=other)
    if anyio_backend == "trio":
        with pytest.raises(UsageError, match="'loopbound' runs on asyncio only"):
            await evaluate(model="loopbound/one")


def test_no_back_end_runs_outside_of_a_loop() -> None:
    assert running_backend() is None
