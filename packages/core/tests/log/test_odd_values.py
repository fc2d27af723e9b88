"""Text and numbers of every kind, in every field: written, read back, or escaped so that they can be seen."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal

import pytest
from log_samples import sample, spec, stats

from proctor.cli import main
from proctor.log import (
    LogWriter,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)
from proctor.schema import ChatMessageTool, EvalDataset, EvalError, EvalPlan, Score

SURROGATE = "a lone \ud83d surrogate"
TEXTS = {"surrogate": SURROGATE, "nul": "a\x00b", "controls": "\x01\x1b[31m\x7f\r\n", "long": "x" * 10_000_000}
DEEP: Any = "bottom"
for _ in range(100):
    DEEP = {"d": [DEEP]}
NUMBERS = {"nan": math.nan, "inf": math.inf, "minus": -math.inf, "big": 2**70, "tiny": 5e-324, "deep": DEEP}


def _shown(text: str, format: str) -> str:
    """How a text is read back: a .json log shows a lone surrogate as its escape, which the peer can read."""
    return text.replace("\ud83d", "\\ud83d") if format == "json" else text


@pytest.mark.parametrize("kind", ["surrogate", "nul", "controls", pytest.param("long", marks=pytest.mark.slow)])
@pytest.mark.parametrize("format", ["eval", "json"])
def test_text_of_any_kind_comes_back_from_every_field(
    tmp_path: Path, kind: str, format: Literal["eval", "json"]
) -> None:
    # given a text of an odd kind everywhere
    text = TEXTS[kind]
    short = text[:1000]  # ids are names of members
    dataset = EvalDataset(name=short, samples=1, sample_ids=[short])
    about = spec(task=short, dataset=dataset, task_args={"arg": text}, metadata={"key": text, short: 1})
    message = ChatMessageTool(content=text, tool_call_id="1", function=short)
    error = EvalError(message=text, traceback=text, traceback_ansi=text)
    one = sample(short, question=text, target=text, metadata={"m": text, short: [text]}, error=error)
    one.messages.append(message)
    one.scores = {"match": Score(value=text, answer=text, explanation=text)}
    writer = LogWriter.open(str(tmp_path), about, EvalPlan(), format=format)
    # when it is written
    writer.write(one)
    writer.finish("error", None, stats(), error=error)
    # then it is read back
    shown, name = _shown(text, format), _shown(short, format)
    log = read_eval_log(writer.location, resolve_attachments=True)
    assert (log.eval.task, log.eval.task_args, log.eval.metadata) == (name, {"arg": shown}, {"key": shown, name: 1})
    assert log.eval.dataset.sample_ids == [name]
    assert log.error is not None and log.error.message == shown
    (read,) = log.samples or []
    assert (read.id, read.input, read.target) == (name, shown, shown)
    assert read.metadata == {"m": shown, name: [shown]}
    assert read.messages[-1].content == shown
    assert read.error is not None and read.error.traceback == shown
    assert read.scores is not None
    assert (read.scores["match"].value, read.scores["match"].explanation) == (shown, shown)
    assert read_eval_log_sample(writer.location, name).uuid == one.uuid
    assert [row.id for row in read_eval_log_sample_summaries(writer.location)] == [name]
    [info] = list_eval_logs(str(tmp_path))
    assert info.name == writer.location


@pytest.mark.parametrize("format", ["eval", "json"])
def test_numbers_and_depth_come_back(tmp_path: Path, format: Literal["eval", "json"]) -> None:
    writer = LogWriter.open(str(tmp_path), spec(1, metadata=dict(NUMBERS)), EvalPlan(), format=format)
    one = sample(1, metadata=dict(NUMBERS))
    one.scores = {"match": Score(value=math.nan, metadata=dict(NUMBERS))}
    writer.write(one)
    writer.finish("success", None, stats())
    log = read_eval_log(writer.location)
    (read,) = log.samples or []
    assert read.scores is not None
    for found in (log.eval.metadata, read.metadata, read.scores["match"].metadata):
        assert json.dumps(found, sort_keys=True) == json.dumps(NUMBERS, sort_keys=True)
    value = read.scores["match"].value
    assert isinstance(value, float) and math.isnan(value)


@pytest.mark.parametrize("format", ["eval", "json"])
def test_what_is_nested_without_end_costs_no_other(tmp_path: Path, format: Literal["eval", "json"]) -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    bottomless: Any = 1
    for _ in range(5000):
        bottomless = [bottomless]
    writer = LogWriter.open(str(tmp_path), spec(3), EvalPlan(), format=format)
    for number, odd in enumerate((endless, bottomless, 1), start=1):
        writer.write(sample(number, metadata={"odd": odd}))
    writer.finish("success", None, stats())
    assert [one.id for one in read_eval_log(writer.location).samples or []] == [1, 2, 3]


@pytest.mark.parametrize("format", ["eval", "json"])
def test_odd_values_can_be_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format: Literal["eval", "json"]
) -> None:
    writer = LogWriter.open(str(tmp_path), spec(1, task=SURROGATE), EvalPlan(), format=format)
    writer.write(sample(SURROGATE, question=SURROGATE, metadata=dict(NUMBERS)))
    writer.finish("success", None, stats())
    for command in (["list", "--log-dir", str(tmp_path)], ["dump", writer.location], ["headers", writer.location]):
        assert main(["log", *command]) == 0
        output = capsys.readouterr()
        assert "surrogate" in output.out
        assert "Traceback" not in output.err


TASK = """
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import solver
from proctor.tool import ToolError

ODD = "a lone \\ud83d surrogate, \\x00 and \\x1b[31m"

@solver
def odd(raises: bool):
    async def solve(state, generate):
        state.store.set(ODD, [float("nan"), 2**70])
        state.metadata[ODD] = float("-inf")
        state.output.completion = ODD
        if raises:
            raise ValueError(ODD)
        return state
    return solve

@task
def odd_values(arg: str = ODD, raises: bool = False):
    sample = Sample(id=ODD, input=ODD, target=ODD, metadata={"n": float("nan")})
    return Task(dataset=[sample], solver=odd(raises), scorer=includes(), metadata={"odd": ODD})
"""


@pytest.mark.parametrize("raises", ["false", "true"])
@pytest.mark.parametrize("format", ["eval", "json"])
def test_a_run_of_odd_values_ends_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], format: str, raises: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.py").write_text(TASK)
    words = ["eval", "odd.py", "--model", "mock/model", "--display", "plain", "--log-format", format]
    assert main([*words, "-T", f"raises={raises}"]) == (1 if raises == "true" else 0)
    output = capfd.readouterr()
    assert "Traceback" not in output.err and "turned off" not in output.err
    [info] = list_eval_logs("logs")
    (read,) = read_eval_log(info).samples or []
    odd = _shown("a lone \ud83d surrogate, \x00 and \x1b[31m", format)
    assert (read.id, read.input, read.target) == (odd, odd, odd)
    assert (read.error is not None) == (raises == "true")
    if raises == "false":
        assert read.scores is not None and read.scores["includes"].value == "C"
        assert read.store[odd][1] == 2**70 and read.metadata[odd] == -math.inf
    elif read.error is not None:
        assert odd in read.error.message or "\\ud83d" in read.error.message
