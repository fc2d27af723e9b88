"""Logs that we wrote, in every state, are the peer's own to it: no error, no warning, nothing missing."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import Any, Literal

import pytest
from killed_log import killed_log
from log_samples import MODEL, sample, spec, stats

from proctor.log import LogWriter, Transcript, read_eval_log, recover_eval_log, span, use_transcript, write_eval_log
from proctor.schema import (
    ApprovalEvent,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentAudio,
    ContentData,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    ContentToolUse,
    ContentVideo,
    ErrorEvent,
    EvalConfig,
    EvalError,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalRetryError,
    EvalSample,
    EvalSampleLimit,
    EvalSampleScore,
    EvalScore,
    EvalScorer,
    InfoEvent,
    LoggerEvent,
    LoggingMessage,
    ModelCall,
    ModelEvent,
    ModelOutput,
    SampleInitEvent,
    SampleLimitEvent,
    SandboxEvent,
    SandboxSpec,
    Score,
    ScoreEdit,
    ScoreEditEvent,
    ScoreEvent,
    StateEvent,
    StoreEvent,
    ToolCall,
    ToolCallContent,
    ToolCallError,
    ToolEvent,
    ToolInfo,
    short_uuid,
)

pytestmark = pytest.mark.peer

LONG = "long text " * 40
PNG = "data:image/png;base64," + "A" * 300


def _messages() -> list[ChatMessage]:
    parts: list[Any] = [
        ContentText(text=LONG, citations=[{"type": "url", "url": "https://a.b", "title": "t"}]),
        ContentReasoning(reasoning=LONG, signature="s", summary="short"),
        ContentImage(image=PNG),
        ContentAudio(audio=PNG, format="mp3"),
        ContentVideo(video=PNG, format="mp4"),
        ContentDocument(document=PNG, filename="a.pdf", mime_type="application/pdf"),
        ContentData(data={"k": LONG, "n": None}),
        ContentToolUse(tool_type="web_search", id="1", name="search", arguments=LONG, result=LONG, error=LONG),
    ]
    call = ToolCall(
        id="c1",
        function="f",
        arguments={"a": LONG, "b": [1, None]},
        parse_error=LONG,
        view=ToolCallContent(content=LONG),
    )
    return [
        ChatMessageSystem(content=LONG, id=short_uuid()),
        ChatMessageUser(content=parts, id=short_uuid(), source="input", metadata={"k": LONG}),
        ChatMessageAssistant(content=LONG, id=short_uuid(), tool_calls=[call], model="m", source="generate"),
        ChatMessageTool(
            content=LONG,
            id=short_uuid(),
            tool_call_id="c1",
            function="f",
            error=ToolCallError(type="timeout", message=LONG),
        ),
    ]


def _everything() -> EvalSample:
    """A sample with every event that we write, and long texts and media wherever they may stand."""
    messages = _messages()
    reply = ChatMessageAssistant(content=LONG, id=short_uuid(), model="m")
    output = ModelOutput.from_message(reply)
    call = ToolCall(id="c1", function="f", arguments={"a": LONG})
    error = EvalError(message=LONG, traceback=LONG, traceback_ansi=LONG)
    request = {"model": "m", "messages": [{"role": "user", "content": LONG}, {"role": "user", "content": [PNG, None]}]}
    tools = [ToolInfo(name="f", description=LONG)]
    raw = ModelCall(request=request, response={"a": LONG})
    failed = ToolCallError(type="unknown", message=LONG)
    logged = LoggingMessage(level="warning", message=LONG, created=1.0, filename="f", module="m", lineno=1)
    events: list[Any] = [
        SampleInitEvent(
            sample={"input": LONG, "target": LONG, "id": 1, "metadata": {"m": LONG}}, state={"messages": [LONG]}
        ),
        ModelEvent(model=MODEL, input=messages[:2], tools=tools, output=output, call=raw),
        ModelEvent(model=MODEL, input=messages, output=output, call=ModelCall(request=dict(request, input=[LONG]))),
        ModelEvent(model=MODEL, role="grader", input=messages[2:], output=ModelOutput(), error=LONG, pending=True),
        ToolEvent(id="c1", function="f", arguments={"a": LONG}, result=LONG, error=failed),
        ToolEvent(id="c2", function="f", arguments={}, result=[ContentText(text=LONG), ContentImage(image=PNG)]),
        ToolEvent(id="c3", function="f", arguments={}, result=3.5, truncated=(10, 5)),
        StateEvent(changes=[{"op": "replace", "path": "/a", "value": {"x": LONG}, "replaced": LONG}]),
        StoreEvent(changes=[{"op": "add", "path": "/a", "value": LONG}, {"op": "remove", "path": "/b"}]),
        InfoEvent(data={"a": [LONG, PNG]}, source="proctor"),
        InfoEvent(data=None),
        SampleLimitEvent(type="token", message=LONG, limit=5),
        SandboxEvent(action="exec", cmd=LONG, output=LONG, result=1),
        LoggerEvent(message=logged),
        ApprovalEvent(message=LONG, call=call, approver="auto", decision="approve"),
        ErrorEvent(error=error.model_dump()),
        ScoreEvent(score=Score(value={"a": 1, "b": None}, explanation=LONG, metadata={"m": LONG}), target=[LONG]),
        ScoreEditEvent(score_name="s", edit=ScoreEdit(value=0.5)),
    ]
    transcript = Transcript()
    with use_transcript(transcript), span("solvers", type="solvers"):
        for event in events:
            transcript.event(event)
    return sample(
        2,
        input=messages,
        messages=[*messages, reply],
        output=output,
        events=transcript.events,
        choices=["A", "B"],
        metadata={"long": LONG, "none": None, "set": {1}},
        store={"k": LONG},
        sandbox=SandboxSpec(type="local"),
        error_retries=[EvalRetryError(message="m", traceback="t", traceback_ansi="a", events=events[:7])],
        limit=EvalSampleLimit(type="token", limit=5, reason="enough"),
        error=error,
        scores={"s": Score(value={"a": 1, "b": None}), "t": Score(value=[1, "x", True])},
    )


def _pruned(value: Any) -> Any:
    """Without nulls of fields (in free-form data there are none here), in plain JSON."""
    return json.loads(json.dumps(value, sort_keys=True))


def _events(dumped: Any) -> Any:
    return [{key: value for key, value in event.items() if value is not None} for event in dumped["events"]]


@pytest.mark.parametrize("format", ["eval", "json"])
def test_a_whole_run(peer: Any, tmp_path: Path, format: Literal["eval", "json"]) -> None:
    # given a log of a run with everything in it
    scorers = [EvalScorer(name="match", options={}, metrics=[{"name": "proctor/accuracy", "options": {}}], metadata={})]
    what = spec(2, scorers=scorers, tags=["a"], metadata={"k": 1}, config=EvalConfig(epochs=1, limit=[0, 2]))
    writer = LogWriter.open(str(tmp_path), what, EvalPlan(steps=[EvalPlanStep(solver="generate")]), format=format)
    written = {1: sample(1), 2: _everything()}
    for one in written.values():
        writer.write(one)
        writer.reduction("match", "mean", EvalSampleScore(value=1.0, sample_id=one.id))
    metrics = {"accuracy": EvalMetric(name="accuracy", value=float("nan"))}
    results = EvalResults(
        total_samples=2, completed_samples=2, scores=[EvalScore(name="match", scorer="match", metrics=metrics)]
    )
    writer.finish("success", results, stats())
    # when the peer reads it in all its ways
    log = peer.ask("full", path=writer.location)
    header = peer.ask("header", path=writer.location)
    rows = peer.ask("summaries", path=writer.location)
    singles = peer.ask("samples", path=writer.location)
    # then it sees what we wrote
    assert (log["status"], header["status"]) == ("success", "success")
    assert math.isnan(log["results"]["scores"][0]["metrics"]["accuracy"]["value"])
    assert [one["id"] for one in log["samples"]] == [1, 2] == [row["id"] for row in rows]
    assert singles == log["samples"]
    assert log["reductions"][0]["samples"][1]["sample_id"] == 2
    for one in log["samples"]:
        mine = json.loads(written[one["id"]].model_dump_json(exclude_none=True))
        assert [event["event"] for event in one["events"]] == [event["event"] for event in mine["events"]]
        for theirs, ours in zip(_events(one), mine["events"], strict=True):
            shared = {key: value for key, value in theirs.items() if key in ours}
            assert _pruned(shared) == _pruned({key: value for key, value in ours.items() if key in shared})
        assert one["attachments"] == {} and one["uuid"] == mine["uuid"]
        assert peer.ask("sample_by_uuid", path=writer.location, uuid=one["uuid"]) == one
    assert [info["task"] for info in peer.ask("names", folder=tmp_path)] == ["numbers"]


@pytest.mark.parametrize("format", ["eval", "json"])
def test_a_run_that_goes_on(peer: Any, tmp_path: Path, format: Literal["eval", "json"]) -> None:
    writer = LogWriter.open(str(tmp_path), spec(), EvalPlan(), format=format)
    done = threading.Event()
    writer.write(_everything(), on_ack=lambda _: done.set())
    assert done.wait(30)
    log = peer.ask("full", path=writer.location)
    assert log["status"] == "started" and [one["id"] for one in log["samples"]] == [2]
    assert peer.ask("header", path=writer.location)["status"] == "started"
    assert [row["id"] for row in peer.ask("summaries", path=writer.location)] == [2]
    assert [one["id"] for one in peer.ask("samples", path=writer.location, required=False)] == [2]
    writer.finish("cancelled", None, stats())
    assert peer.ask("header", path=tmp_path / Path(writer.location).name)["status"] in ("cancelled", "started")


@pytest.mark.parametrize("format", ["eval", "json"])
def test_a_killed_run(peer: Any, tmp_path: Path, format: str) -> None:
    location, ids = killed_log(tmp_path, format, 60)
    target = recover_eval_log(location)
    log = peer.ask("full", path=target)
    assert log["status"] == "error" and log["error"]["message"] == "Eval recovered from crash"
    assert set(ids) <= {one["id"] for one in log["samples"]}
    assert len(peer.ask("summaries", path=target)) == len(log["samples"])


@pytest.mark.parametrize("format", ["eval", "json"])
def test_odd_texts_and_numbers(peer: Any, tmp_path: Path, format: str) -> None:
    odd = {"lone": "\ud83d", "nul": "\x00", "nan": float("nan"), "big": 2**70, "inf": float("-inf"), "e": "日本 \u2028"}
    ids: list[int | str] = ["日本語-id", "a/b c%d:e?", "lone \ud83d", 3]
    samples = [
        sample(id, question="why \ud83d?" + LONG, metadata=odd, scores={"s": Score(value=float("nan"))}) for id in ids
    ]
    what = spec()
    what.dataset.sample_ids = ids[:2]
    path = tmp_path / f"odd.{format}"
    write_eval_log(EvalLog(status="success", eval=what, samples=samples), path)
    log = peer.ask("full", path=path)
    assert [one["id"] for one in log["samples"]] == [one.id for one in read_eval_log(path).samples or []]
    # The peer refuses a .json log with an escaped lone surrogate, so there it is shown as text.
    lone = "\ud83d" if format == "eval" else r"\ud83d"
    for one in log["samples"]:
        assert json.dumps(one["metadata"], sort_keys=True) == json.dumps({**odd, "lone": lone}, sort_keys=True)
        assert one["input"] == one["messages"][0]["content"] == f"why {lone}?{LONG}"
        assert one["events"][5]["input"][0]["content"] == f"why {lone}?{LONG}"
        assert math.isnan(one["scores"]["s"]["value"])
    assert len(peer.ask("summaries", path=path)) == 4
    assert [one["id"] for one in peer.ask("samples", path=path)] == ids[:2]


@pytest.mark.parametrize("format", ["eval", "json"])
def test_odd_texts_in_the_header_and_in_what_tools_say(
    peer: Any, tmp_path: Path, format: Literal["eval", "json"]
) -> None:
    odd = "lone \ud83d, nul \x00, escape \x1b[31m"
    about = spec(1, task=odd, task_args={"arg": odd, odd: 2**70}, metadata={odd: [odd, math.inf]})
    error = EvalError(message=odd, traceback=odd, traceback_ansi=odd)
    one = sample(1, target=odd, error=error)
    one.messages.append(ChatMessageTool(content=odd, tool_call_id="1", function="f"))
    writer = LogWriter.open(str(tmp_path), about, EvalPlan(), format=format)
    writer.write(one)
    writer.finish("error", None, stats(), error=error)
    log = peer.ask("full", path=writer.location)
    shown = odd if format == "eval" else odd.replace("\ud83d", r"\ud83d")
    assert (log["eval"]["task"], log["error"]["message"]) == (shown, shown)
    assert log["eval"]["task_args"] == {"arg": shown, shown: 2**70}
    assert log["eval"]["metadata"] == {shown: [shown, math.inf]}
    (read,) = log["samples"]
    assert read["target"] == read["error"]["traceback"] == read["messages"][-1]["content"] == shown
    assert peer.ask("header", path=writer.location)["eval"]["task"] == shown


def test_a_log_without_samples(peer: Any, tmp_path: Path) -> None:
    writer = LogWriter.open(str(tmp_path), spec(0), EvalPlan())
    writer.finish("error", None, stats(), error=EvalError(message="m", traceback="t", traceback_ansi="a"))
    log = peer.ask("full", path=writer.location)
    assert log["samples"] == [] and log["error"]["message"] == "m"
    assert peer.ask("summaries", path=writer.location) == []
