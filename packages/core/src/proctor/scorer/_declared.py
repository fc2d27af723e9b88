"""Scorers and metrics made again from what a log declares of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.registry import RegistryInfo, create, tag
from proctor.schema import EvalLog, EvalResults, EvalSampleSummary, EvalScorer, EvalSpec, Score
from proctor.scorer._reducers import create_reducers
from proctor.scorer._results import ResultsBuilder
from proctor.scorer._types import Scorer
from proctor.solver import Target, TaskState

__all__ = ["declared_metrics", "declared_results", "declared_scorers"]


def declared_scorers(spec: EvalSpec, missing: list[str]) -> list[Scorer]:
    """Stand-ins for the scorers that a log declares: their names and metrics, and no scores.

    The scorers themselves are not needed to compute results, so it is no matter whose they are.

    Args:
        spec: what was evaluated.
        missing: gets the names of metrics whose code is not at hand; they are left out.
    """
    shared = declared_metrics(spec.metrics, missing) if spec.metrics else None
    return [_stand_in(one, shared, missing) for one in spec.scorers or ()]


def declared_results(header: EvalLog, rows: Sequence[EvalSampleSummary], missing: list[str]) -> EvalResults | None:
    """The results of samples by the metrics that their log declares, as far as their code is at hand.

    Args:
        header: of the log.
        rows: the samples.
        missing: gets the names of what could not be computed.

    Returns:
        None when that failed as a whole: whatever was raised, the samples are worth more.
    """
    spec = header.eval
    try:
        names = spec.config.epochs_reducer
        builder = ResultsBuilder(
            declared_scorers(spec, missing),
            reducers=create_reducers(names) if names else None,
            epochs=spec.config.epochs or 1,
        )
        completed = [row for row in rows if row.error is None]
        for row in completed:
            builder.add(row.id, row.epoch, row.scores, row.metadata)
        results = builder.results(len(rows), len(completed))
        missing += [f"{failure.metric} ({failure.reason})" for failure in builder.failures]
        return results
    except Exception as error:
        missing.append(f"all metrics ({type(error).__name__}: {error})")
        return None


def _stand_in(declared: EvalScorer, shared: Any, missing: list[str]) -> Scorer:
    if declared.metrics is None and shared is None:  # an older log: it has what the scorer of that name has
        made: Scorer = create("scorer", declared.name, **(declared.options or {}))
        return made

    async def score(state: TaskState, target: Target) -> Score | None:
        return None

    metrics = declared_metrics(declared.metrics, missing) if shared is None else shared
    return tag(
        score,
        RegistryInfo("scorer", declared.name, params_passed=declared.options or {}, attribs={"metrics": metrics}),
    )


def declared_metrics(declared: Mapping[str, Any] | Sequence[Any], missing: list[str]) -> Any:
    """Metrics from their declaration: name and options of each, in lists and dicts as they were given."""
    if isinstance(declared, Mapping):
        return {key: declared_metrics(some, missing) for key, some in declared.items()}
    found = []
    for one in declared:
        name = one.get("name")
        if not isinstance(name, str):
            found.append(declared_metrics(one, missing))
            continue
        try:
            options = {key: _made(value) for key, value in (one.get("options") or {}).items()}
            found.append(create("metric", name, **options))
        except LookupError:
            if name not in missing:
                missing.append(name)
    return found


def _made(value: Any) -> Any:
    """An argument of a metric; one that is a component itself is made again."""
    if isinstance(value, list):
        return [_made(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"type", "name", "params"} and value["type"] in ("metric", "reducer"):
        return create(value["type"], value["name"], **{key: _made(item) for key, item in value["params"].items()})
    return {key: _made(item) for key, item in value.items()}
