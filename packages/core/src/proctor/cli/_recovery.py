"""What ``proctor log recover`` computes anew, and what it says of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from proctor.log import read_eval_log, read_eval_log_sample_summaries, recover_eval_log
from proctor.scorer import declared_results

__all__ = ["describe", "recover"]


def recover(path: str, output: str | None, overwrite: bool) -> dict[str, Any]:
    """Make a finished log of the one at ``path``; what was recovered, as data.

    Raises:
        UsageError: there is nothing to recover, or ``output`` is there already.
    """
    skipped: list[str] = []

    rescore = partial(declared_results, missing=skipped)
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
        values = {name: f"{value:.3g}" for name, value in found["metrics"].items() if not math.isnan(value)}
        told = ", ".join(f"{name} {value}" for name, value in values.items())
        lines.insert(1, f"Computed from these: {told}." if told else "None of them has a score: no metric has a value.")
    if found["skipped"]:
        lines.append(f"Not computed, since their code is not at hand: {', '.join(found['skipped'])}.")
    return "\n".join(lines)
