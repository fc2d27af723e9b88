"""Score a log by a grader that costs money, in a process of its own: ``python judge.py LOG OUTPUT BACKEND``.

It writes to ``KILL_ACKS`` how many samples are done, and kills its own process group at the moment ``KILL_AT``.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from witness import Moment, arm, die

from proctor import score
from proctor.model import get_model
from proctor.scorer import Score, Scorer, accuracy, scorer
from proctor.solver import TaskState


@scorer(metrics=[accuracy()])
def judged() -> Scorer:
    """The prompt names sample and epoch, so that the server can count them."""

    async def score(state: TaskState, target: object) -> Score:
        said = await get_model(role="grader").generate(f"{state.sample_id} {state.epoch} is it right?")
        return Score(value="C" if "yes" in said.completion else "I")

    return score


def main() -> None:
    """Score, and say what is done."""
    log, output, backend = sys.argv[1:]
    at = Moment(os.environ.get("KILL_AT", "never:0:0"))
    arm(at)
    acks = os.open(os.environ["KILL_ACKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def tell(done: int, total: int) -> None:
        os.write(acks, f"{done}\n".encode())
        if at.now("told"):
            die()

    options: dict[str, Any] = {"async_backend": backend, "max_connections": 5}
    score(
        log, judged(), output=output, overwrite=True, tell=tell, model_roles={"grader": "openai/gpt-4o-mini"}, **options
    )


if __name__ == "__main__":
    main()
