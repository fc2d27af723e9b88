"""The load of the benchmarks: one short question a sample, made when its turn comes."""

from __future__ import annotations

from collections.abc import Iterator

from proctor import Task, task
from proctor.dataset import IterableDataset, Sample
from proctor.scorer import match
from proctor.solver import generate


@task
def arithmetic(samples: int = 2000) -> Task:
    """``samples`` variants of one sum."""

    def make() -> Iterator[Sample]:
        for variant in range(samples):
            yield Sample(input=f"What is 2 + 2? (variant {variant})", target="4")

    return Task(dataset=IterableDataset(make, length=samples), solver=generate(), scorer=match())
