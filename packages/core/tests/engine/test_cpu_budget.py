"""The log says how many CPUs the run had, and what set that."""

from __future__ import annotations

from pathlib import Path

from proctor import Task, eval
from proctor.concurrency import cpu_budget
from proctor.dataset import Sample


def test_the_budget_and_its_source_are_in_the_log(tmp_path: Path) -> None:
    [log] = eval(Task(dataset=[Sample(input="q")]), model="mock/model", log_dir=str(tmp_path), display="none")

    assert log.eval.metadata is not None
    budget = cpu_budget()
    assert log.eval.metadata["proctor"]["cpu_budget"] == {"cpus": budget.cpus, "source": budget.source}
