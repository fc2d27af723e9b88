"""Scores while a sample is being solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from copy import copy

from proctor.agent._agent import AgentState
from proctor.log import transcript
from proctor.schema import Score, ScoreEvent
from proctor.scorer import Scorer
from proctor.solver import TaskState, sample_state

__all__ = ["score", "use_scorers"]

_scorers: ContextVar[Mapping[str, Scorer]] = ContextVar("proctor_sample_scorers", default={})  # noqa: B039 - read only


class use_scorers:
    """Make ``scorers`` what ``score()`` uses in the code inside (the engine does so while a sample is being solved)."""

    __slots__ = ("_scorers", "_token")

    def __init__(self, scorers: Mapping[str, Scorer]) -> None:
        self._scorers = scorers

    def __enter__(self) -> None:
        self._token = _scorers.set(self._scorers)

    def __exit__(self, *error: object) -> None:
        _scorers.reset(self._token)


async def score(state: TaskState | AgentState) -> list[Score]:
    """What the task's scorers think of ``state`` so far.

    Args:
        state: the state of the sample, or of an agent that works on it.

    Returns:
        The scores, in the order of the scorers; a scorer that has nothing to say gives none.

    Raises:
        RuntimeError: outside a sample, or if its task has no scorer.
    """
    if isinstance(state, AgentState):
        state = _as_task_state(state)
    scorers = _scorers.get()
    if not scorers:
        raise RuntimeError("there is no scorer here: score() works while a sample of a task with a scorer is solved")
    scores: list[Score] = []
    for name, scorer in scorers.items():
        given = await scorer(state, state.target)
        if given is not None:
            scores.append(given)
            transcript().event(ScoreEvent(score=given, target=_target(state.target), scorer=name, intermediate=True))
    return scores


def _target(target: Sequence[str]) -> str | list[str]:
    return target[0] if len(target) == 1 else list(target)


def _as_task_state(state: AgentState) -> TaskState:
    current = sample_state()
    if current is None:
        raise RuntimeError("an agent can be scored only while a sample is being solved")
    scored = copy(current)
    scored.messages = state.messages
    scored.output = state.output
    return scored
