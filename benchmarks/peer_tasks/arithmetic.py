"""The same load for the peer; it runs in the peer's own environment."""

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate


@task
def arithmetic(samples: int = 2000) -> Task:
    variants = [Sample(input=f"What is 2 + 2? (variant {variant})", target="4") for variant in range(samples)]
    return Task(dataset=MemoryDataset(variants), solver=generate(), scorer=match())
