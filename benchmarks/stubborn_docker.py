"""A command in a container that will not end, with a child that left its session. Prints how long it outlived its time.

The seconds are those from the end of its time (1 s) until a look into the container finds none of its processes.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from proctor import Task, eval
from proctor.contracts import ExecTimeoutError
from proctor.dataset import Sample
from proctor.sandbox import sandbox
from proctor.solver import Generate, Solver, TaskState, solver

TIME, GIVE_UP = 1, 60  # seconds that the command has; after which it is not waited for any more
STUBBORN = (
    "trap '' TERM INT HUP; "
    "setsid sh -c 'trap \"\" TERM INT HUP; echo > child; sleep 4321 & sleep 4321' & "
    "while :; do sleep 4321; done"
)


@solver
def outlived() -> Solver:
    """The completion says how many seconds the command was still there."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        start = time.perf_counter()
        with suppress(ExecTimeoutError):
            raise RuntimeError(f"it ended by itself: {await sandbox().exec(['sh', '-c', STUBBORN], timeout=TIME)}")
        while True:
            found = await sandbox().exec(["ps", "-o", "args"])
            assert found.success, found
            seconds = time.perf_counter() - start - TIME
            if "4321" not in found.stdout or seconds > GIVE_UP:
                break
        assert (await sandbox().exec(["test", "-e", "child"])).success, "its child never ran"
        state.output.completion = str(seconds)
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
