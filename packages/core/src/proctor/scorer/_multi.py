from __future__ import annotations

from collections.abc import Sequence

from proctor.concurrency import collect
from proctor.contracts import UsageError
from proctor.schema import Score
from proctor.scorer._decorators import scorer
from proctor.scorer._mean import accuracy
from proctor.scorer._reducers import create_reducers
from proctor.scorer._stderr import stderr
from proctor.scorer._types import Scorer, ScoreReducer
from proctor.solver import Target, TaskState


@scorer(metrics=[accuracy(), stderr()])
def multi_scorer(scorers: Sequence[Scorer], reducer: str | ScoreReducer) -> Scorer:
    """Several scorers at once, whose scores are reduced to one.

    Args:
        scorers: the scorers; one that has nothing to say about a sample does not take part.
        reducer: how: ``mean``, ``mode``, ``majority``, ``max``, ``at_least_2``, ... or a reducer.
    """
    return panel(scorers, reducer)


def panel(scorers: Sequence[Scorer], reducer: str | ScoreReducer) -> Scorer:
    """The scorer that ``multi_scorer`` makes, without its name."""
    reduce = create_reducers(reducer)[0]
    members = list(scorers)
    if not members:
        raise UsageError("several scorers in one need at least one scorer, but the list is empty")

    async def score(state: TaskState, target: Target) -> Score | None:
        found = await collect(*[member(state, target) for member in members])
        given = [one for one in found if one is not None]
        return reduce(given) if given else None

    return score
