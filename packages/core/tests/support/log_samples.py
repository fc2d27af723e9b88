"""Samples and logs for tests of the log room: small, whole, and of every odd kind that a log must survive."""

from __future__ import annotations

from typing import Any

from proctor.log import Store as SampleStore
from proctor.log import Transcript, now_iso, now_iso_seconds, span, use_store, use_transcript
from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    EvalConfig,
    EvalDataset,
    EvalSample,
    EvalSpec,
    EvalStats,
    ModelCall,
    ModelEvent,
    ModelOutput,
    ModelUsage,
    SampleInitEvent,
    Score,
    ScoreEvent,
    short_uuid,
)

MODEL = "openai/gpt-4o-mini"


def spec(samples: int = 3, **fields: Any) -> EvalSpec:
    """The spec of an evaluation of ``samples`` samples with ids from 1."""
    dataset = EvalDataset(name="numbers", samples=samples, sample_ids=list(range(1, samples + 1)))
    given: dict[str, Any] = {
        "created": now_iso_seconds(),
        "task": "numbers",
        "task_id": short_uuid(),
        "run_id": short_uuid(),
        "eval_id": short_uuid(),
        "dataset": dataset,
        "model": MODEL,
        "config": EvalConfig(epochs=1),
    }
    return EvalSpec(**{**given, **fields})


def stats() -> EvalStats:
    """Times, and no tokens."""
    return EvalStats(started_at=now_iso_seconds(), completed_at=now_iso_seconds())


def sample(id: int | str = 1, epoch: int = 1, *, question: str = "What is 2 + 2?", **fields: Any) -> EvalSample:
    """A sample of one turn, recorded as the engine records it."""
    user: ChatMessage = ChatMessageUser(content=question, id=short_uuid(), source="input")
    reply = ChatMessageAssistant(content="The answer is 4.", id=short_uuid(), source="generate", model="gpt-4o-mini")
    output = ModelOutput.from_message(reply, usage=ModelUsage(input_tokens=9, output_tokens=5, total_tokens=14))
    score = Score(value="C", answer="4", explanation=reply.text)
    transcript = Transcript()
    with use_store(SampleStore()), use_transcript(transcript):
        with span("init", type="init"):
            transcript.event(
                SampleInitEvent(sample={"input": question, "target": "4", "id": id}, state={"messages": []})
            )
        with span("solvers", type="solvers"), span("generate", type="solver"):
            request = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": question}]}
            call = ModelCall(request=request, response={"id": "r1", "text": reply.text}, time=0.5)
            transcript.event(ModelEvent(model=MODEL, input=[user], output=output, call=call, completed=now_iso()))
        with span("scorers", type="scorers"), span("match", type="scorer"):
            transcript.event(ScoreEvent(score=score, target="4"))
    given: dict[str, Any] = {
        "id": id,
        "epoch": epoch,
        "input": question,
        "target": "4",
        "messages": [user, reply],
        "output": output,
        "scores": {"match": score},
        "events": transcript.events,
        "model_usage": {MODEL: output.usage},
        "started_at": now_iso(),
        "completed_at": now_iso(),
        "total_time": 0.5,
        "working_time": 0.25,
        "uuid": short_uuid(),
        "error_retries": [],
        "turn_count": 1,
    }
    return EvalSample(**{**given, **fields})
