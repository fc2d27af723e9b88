"""A task whose samples fail when a test says so, and count how often they are run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor import Epochs, Task, task
from proctor.dataset import IterableDataset, Sample
from proctor.engine import Agenda, run
from proctor.log import index_eval_log
from proctor.model import ModelOutput, get_model
from proctor.schema import EvalLog
from proctor.scorer import Score, Target, accuracy, grouped, metric, scorer, stderr
from proctor.solver import generate, solver

LONG = "word  " * 400  # a summary keeps neither its length nor its spaces


@dataclass
class World:
    """What the samples of a test do."""

    fails: Callable[[int, int], bool] = lambda id, epoch: False
    runs: Counter[tuple[int, int]] = field(default_factory=Counter)


WORLD = World()


@solver
def watched() -> Any:
    async def solve(state: Any, generate: Any) -> Any:
        WORLD.runs[state.sample_id, state.epoch] += 1
        if WORLD.fails(state.sample_id, state.epoch):
            raise ValueError(f"no {state.sample_id}")
        return state

    return solve


@metric
def spaces() -> Any:
    """A metric that looks at what summaries do not keep."""

    def compute(scores: list[Any]) -> float:
        return sum(len(score.sample_metadata["text"]) + score.score.explanation.count("  ") for score in scores)

    return compute


def _metrics(all: bool) -> list[Any]:
    return [accuracy(), stderr(), *([grouped(accuracy(), "group"), spaces()] if all else [])]


@scorer(metrics=[accuracy(), stderr()])
def judged() -> Any:
    async def score(state: Any, target: Target) -> Score:
        if state.sample_id % 5 == 4:
            return Score.unscored("refusal")
        return Score(value=(state.sample_id * 37 + state.epoch) % 11 / 10, explanation=LONG)

    return score


def samples(count: int) -> Iterable[Sample]:
    """Samples with metadata, numbered from 1."""
    for id in range(1, count + 1):
        yield Sample(input=f"Question {id}", target="x", id=id, metadata={"group": f"g {id % 3}", "text": LONG})


@task
def resumable(count: int = 8, epochs: int = 1, lazy: bool = False, all_metrics: bool = False) -> Task:
    """A task that tests resume."""
    dataset: Any = IterableDataset(lambda: samples(count), length=count) if lazy else list(samples(count))
    return Task(
        dataset=dataset,
        solver=[watched(), generate()],
        scorer=judged(),
        metrics=_metrics(all_metrics),
        epochs=Epochs(epochs, ["mean", "max"] if epochs > 1 else None),
    )


def model() -> Any:
    """Every third reply is cut short."""

    def reply(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        stop: Any = "max_tokens" if int(input[-1].text.split()[1]) % 3 == 0 else "stop"
        return ModelOutput.from_content("model", "An answer.", stop_reason=stop)

    return get_model("mock/model", custom_outputs=reply, memoize=False)


def attempt(folder: Path, prior: Iterable[str] = (), options: Any = None, **args: Any) -> EvalLog:
    """Run ``resumable`` once, after the attempts whose logs are ``prior``."""
    told = {"display": "none", "log_dir": str(folder), "fail_on_error": False, "score_display": False}

    def agenda(units: Any) -> Agenda:
        indexes = [index_eval_log(location) for location in prior]
        return Agenda(prior={units[0].id: indexes} if indexes else {})

    [log] = run(resumable, model(), {**told, "task_args": args, **(options or {})}, agenda).logs
    return log


def metrics(log: EvalLog) -> dict[str, float]:
    """The metrics of a log, by row."""
    assert log.results is not None
    return {
        f"{row.name}/{row.reducer}/{name}": metric.value
        for row in log.results.scores
        for name, metric in row.metrics.items()
    }
