"""The load of the Docker benchmark as an evaluation: samples that run some commands each. Prints seconds."""

from __future__ import annotations

import sys
import time

from proctor import Task, eval, task
from proctor.dataset import MemoryDataset, Sample
from proctor.sandbox import sandbox
from proctor.scorer import includes
from proctor.solver import Generate, Solver, TaskState, solver


@solver
def commands(count: int) -> Solver:
    """Runs ``count`` commands, one after the other."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        for _ in range(count):
            result = await sandbox().exec(["sh", "-c", f"echo {state.sample_id}"])
            assert result.stdout == f"{state.sample_id}\n"
        state.output.completion = "done"
        return state

    return solve


@task
def containers(samples: int, count: int) -> Task:
    """``samples`` samples with ``count`` commands each."""
    dataset = MemoryDataset([Sample(input="q", target="done", id=number) for number in range(1, samples + 1)])
    return Task(dataset=dataset, solver=commands(count), scorer=includes())


def work(image: str, samples: int, count: int, at_once: int, log_dir: str) -> float:
    start = time.perf_counter()
    [log] = eval(
        containers(samples, count),
        model="mock/model",
        sandbox=("docker", image),
        max_samples=at_once,
        max_sandboxes=at_once,
        display="none",
        log_dir=log_dir,
    )
    elapsed = time.perf_counter() - start
    assert log.status == "success", log.error
    assert log.results is not None and log.results.completed_samples == samples
    return elapsed


if __name__ == "__main__":
    samples, count, at_once = map(int, sys.argv[2:5])
    print(work(sys.argv[1], samples, count, at_once, sys.argv[5]))
