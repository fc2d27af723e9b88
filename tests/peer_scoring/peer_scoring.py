"""Answers questions about scoring with the real Inspect AI; runs in its own Python, by `conftest.py`.

Reads ``[question, [case, ...]]`` as JSON from stdin and writes the list of answers as JSON to the file in the first
argument (stdout belongs to Inspect). An answer that failed is ``{"raised": message}``.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import inspect_ai.dataset
import inspect_ai.scorer as peer
from inspect_ai import Epochs, Task
from inspect_ai import eval as peer_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.solver import TaskState, solver


def value_of(value: Any) -> Any:
    """NaN travels as text, since the strict JSON between the two has none."""
    if value == "NaN":
        return math.nan
    if isinstance(value, dict):
        return {key: value_of(part) for key, part in value.items()}
    return [value_of(part) for part in value] if isinstance(value, list) else value


def told(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value) if math.isinf(value) else "NaN"
    if isinstance(value, dict):
        return {str(key): told(part) for key, part in value.items()}
    return [told(part) for part in value] if isinstance(value, list) else value


def state_of(case: dict[str, Any]) -> TaskState:
    state = TaskState(
        model="mockllm/model",
        sample_id=1,
        epoch=1,
        input="Q?",
        messages=[ChatMessageUser(content="Q?")],
        choices=case.get("choices"),
        output=ModelOutput.from_content("mockllm/model", case["completion"]),
    )
    if case.get("shuffle") is not None:
        state.choices.shuffle(random.Random(case["shuffle"]))
    for index in case.get("chosen", []):
        state.choices.mark_choice(index, True)
    return state


def grader(reply: str) -> Any:
    output = ModelOutput.from_content("mockllm/model", reply)
    # Without a usage the mock counts tokens, for which it downloads a tokenizer.
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return get_model("mockllm/model", custom_outputs=[output], memoize=False)


def score(case: dict[str, Any]) -> Any:
    args = dict(case.get("args", {}))
    if "graders" in case:
        graders = [grader(reply) for reply in case["graders"]]
        args["model"] = graders if len(graders) > 1 else graders[0]
    scorer = getattr(peer, case["scorer"])(**args)
    found = asyncio.run(scorer(state_of(case), peer.Target(case["target"])))
    return {name: told(getattr(found, name)) for name in ("value", "answer", "explanation", "reason")}


def metric(case: dict[str, Any]) -> Any:
    made = eval(case["metric"], vars(peer))
    scores = [
        peer.SampleScore(score=peer.Score(value=value_of(value)), sample_id=index, sample_metadata={"g": group})
        for index, (value, group) in enumerate(zip(case["values"], case["groups"], strict=True))
    ]
    return told(made(scores))


def reduce(case: dict[str, Any]) -> Any:
    reducer = eval(case["reducer"], vars(peer))
    scores = [
        peer.Score(value=value_of(value), answer=f"a{index % 2}", explanation="e", metadata={"index": index})
        for index, value in enumerate(case["values"])
    ]
    found = reducer(scores)
    return {name: told(getattr(found, name)) for name in ("value", "answer", "explanation", "reason")}


@solver
def nothing() -> Any:
    async def solve(state: TaskState, generate: Any) -> TaskState:
        return state

    return solve


@peer.metric
def plain() -> Any:
    def compute(scores: Any) -> float:
        return float(len(scores))

    return compute


@peer.metric
def named() -> Any:
    def compute(scores: Any) -> dict[str, float]:
        return {"x": float(len(scores)), "y": 2.0}

    return compute


@peer.metric
def listed() -> Any:
    def compute(scores: Any) -> list[float]:
        return [float(len(scores)), 2.0]

    return compute


OWN = {"plain": plain, "named": named, "listed": listed}


def made(spec: Any) -> Any:
    if isinstance(spec, dict):
        return {key: [made(one) for one in some] for key, some in spec.items()}
    return [made(one) for one in spec] if isinstance(spec, list) else eval(spec, {**vars(peer), **OWN})


def scripted(spec: dict[str, Any]) -> Any:
    @peer.scorer(metrics=made(spec["metrics"]), name=spec["name"])
    def make() -> Any:
        async def score(state: TaskState, target: Any) -> Any:
            value = spec["values"][str(state.sample_id)][state.epoch - 1]
            if value == "error":
                raise RuntimeError("as the case says")
            if value == "none":
                return None
            return peer.Score(value=value_of(value), answer=f"a{state.epoch}", metadata={"epoch": state.epoch})

        return score

    return make()


def results(case: dict[str, Any]) -> Any:
    ids = list(case["scorers"][0]["values"])
    samples = [Sample(input="x", id=id, metadata={"g": "ab"[n % 2], "c": n // 2}) for n, id in enumerate(ids)]
    task = Task(
        dataset=MemoryDataset(samples),
        solver=nothing(),
        scorer=[scripted(one) for one in case["scorers"]],
        epochs=Epochs(case.get("epochs", 1), case.get("reducers")),
        metrics=made(case["metrics"]) if "metrics" in case else None,
        name="case",
    )
    with tempfile.TemporaryDirectory() as folder:
        (log,) = peer_eval(
            task, model="mockllm/model", display="none", log_dir=folder, fail_on_error=False, ctl_server=False
        )
        assert log.results is not None, log.error
        # Told while the file is there: the log may read it when asked.
        return {
            "results": told(log.results.model_dump(exclude_none=True)),
            "reductions": told([one.model_dump(exclude_none=True) for one in log.reductions or []]),
        }


def read(case: dict[str, Any]) -> Any:
    dataset = getattr(inspect_ai.dataset, case["reader"])(case["path"], **case["args"])
    names = ("input", "target", "choices", "id", "metadata", "files", "setup")
    return [
        {name: told(getattr(sample, name)) for name in names}
        | {"input": sample.input if isinstance(sample.input, str) else [one.text for one in sample.input]}
        for sample in dataset
    ]


QUESTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "score": score,
    "metric": metric,
    "reduce": reduce,
    "results": results,
    "read": read,
}


def answered(question: str, case: dict[str, Any]) -> Any:
    try:
        return QUESTIONS[question](case)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    question, cases = json.load(sys.stdin)
    answers = [answered(question, case) for case in cases]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(answers, file)
