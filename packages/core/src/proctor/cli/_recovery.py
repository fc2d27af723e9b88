"""What ``proctor log recover`` computes anew, and what it says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.log import read_eval_log, read_eval_log_sample_summaries, recover_eval_log
from proctor.registry import RegistryInfo, create, tag
from proctor.schema import EvalLog, EvalResults, EvalSampleSummary, EvalScorer
from proctor.scorer import ResultsBuilder, Score, Scorer, Target, create_reducers
from proctor.solver import TaskState

__all__ = ["describe", "recover"]


def recover(path: str, output: str | None, overwrite: bool) -> dict[str, Any]:
    """Make a finished log of the one at ``path``; what was recovered, as data.

    Raises:
        UsageError: there is nothing to recover, or ``output`` is there already.
    """
    skipped: list[str] = []

    def rescore(header: EvalLog, rows: Sequence[EvalSampleSummary]) -> EvalResults | None:
        return _rescored(header, rows, skipped)

    made = recover_eval_log(path, output, overwrite=overwrite, rescore=rescore)
    header = read_eval_log(made, header_only=True, reductions=False)
    rows = read_eval_log_sample_summaries(made)
    total = header.results.total_samples if header.results is not None else len(rows)
    return {
        "source": path,
        "log": made,
        "status": header.status,
        "recovered": len(rows),
        "total": max(total, len(rows)),
        "errors": sum(1 for row in rows if row.error is not None),
        "metrics": {
            f"{row.name}/{name}" + (f" ({row.reducer})" if row.reducer else ""): metric.value
            for row in (header.results.scores if header.results is not None else ())
            for name, metric in row.metrics.items()
        },
        "skipped": skipped,
    }


def describe(found: Mapping[str, Any]) -> str:
    """The same in words."""
    recovered, total, errors = found["recovered"], found["total"], found["errors"]
    failed = f", {errors} of them with an error" if errors else ""
    lines = [
        f"Recovered {recovered:,} of {total:,} samples from {found['source']}{failed}.",
        f"The log is {found['log']} (status {found['status']}): `proctor log dump {found['log']}` shows it.",
    ]
    if found["metrics"]:
        values = ", ".join(f"{name} {value:.3g}" for name, value in found["metrics"].items())
        lines.insert(1, f"Computed from these: {values}.")
    if found["skipped"]:
        lines.append(f"Not computed, since their code is not at hand: {', '.join(found['skipped'])}.")
    return "\n".join(lines)


def _rescored(header: EvalLog, rows: Sequence[EvalSampleSummary], skipped: list[str]) -> EvalResults | None:
    """The results by the metrics that the log declares; those that are not built in are left out.

    The scorers themselves are not needed, so it is no matter whose they are.
    """
    spec = header.eval
    try:
        scorers = [_stand_in(one, skipped) for one in spec.scorers or ()]
        names = spec.config.epochs_reducer
        builder = ResultsBuilder(
            scorers,
            metrics=_metrics(spec.metrics, skipped) if spec.metrics else None,
            reducers=create_reducers(names) if names else None,
            epochs=spec.config.epochs or 1,
        )
        completed = [row for row in rows if row.error is None]
        for row in completed:
            builder.add(row.id, row.epoch, row.scores, row.metadata)
        return builder.results(len(rows), len(completed))
    except Exception as error:  # whatever a metric raises, the samples are worth more
        skipped.append(f"all metrics ({type(error).__name__}: {error})")
        return None


def _stand_in(declared: EvalScorer, skipped: list[str]) -> Scorer:
    """A scorer that is called and declared as that of the log, and scores nothing."""
    if declared.metrics is None:  # an older log: it has what the scorer of that name has
        made: Scorer = create("scorer", declared.name, **(declared.options or {}))
        return made

    async def score(state: TaskState, target: Target) -> Score | None:
        return None

    attribs = {"metrics": _metrics(declared.metrics, skipped)}
    return tag(score, RegistryInfo("scorer", declared.name, params_passed=declared.options or {}, attribs=attribs))


def _metrics(declared: Any, skipped: list[str]) -> Any:
    """Metrics from their declaration: name and options of each, in lists and dicts as they were given."""
    if isinstance(declared, Mapping):
        return {key: _metrics(some, skipped) for key, some in declared.items()}
    found = []
    for one in declared:
        name = one.get("name")
        if not isinstance(name, str):
            found.append(_metrics(one, skipped))
            continue
        try:
            options = {key: _made(value) for key, value in (one.get("options") or {}).items()}
            found.append(create("metric", name, **options))
        except LookupError:
            if name not in skipped:
                skipped.append(name)
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
