"""A command in a container that will not end, with a child that left its session. Prints how long it outlived its time.

The seconds are those from the end of its time (1 s) until a look into the container finds none of its processes.
"""

from __future__ import annotations

import sys
import time

from proctor import Task, eval
from proctor.contracts import ExecTimeoutError
from proctor.dataset import Sample
from proctor.sandbox import sandbox
from proctor.solver import Generate, Solver, TaskState, solver

TIME = 1  # seconds that the command has
STUBBORN = (
    "trap '' TERM INT HUP; "
    "setsid sh -c 'trap \"\" TERM INT HUP; sleep 4321 & sleep 4321' & "
    "while :; do sleep 4321; done"
)


@solver
def outlived() -> Solver:
    """The completion says how many seconds the command was still there."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        start = time.perf_counter()
        try:
            result = await sandbox().exec(["sh", "-c", STUBBORN], timeout=TIME)
            raise RuntimeError(f"the command ended by itself: {result}")
        except ExecTimeoutError:
            over = time.perf_counter()
        assert over - start >= TIME
        while "4321" in (await sandbox().exec(["ps", "-o", "args"])).stdout:
            pass
        state.output.completion = str(time.perf_counter() - start - TIME)
        return state

    return solve


def work(image: str, log_dir: str) -> str:
    task = Task(dataset=[Sample(input="q")], solver=outlived(), name="stubborn")
    [log] = eval(task, model="mock/model", sandbox=("docker", image), display="none", log_dir=log_dir)
    assert log.status == "success", log.error
    assert log.samples is not None
    return log.samples[0].output.completion


if __name__ == "__main__":
    print(work(sys.argv[1], sys.argv[2]))
