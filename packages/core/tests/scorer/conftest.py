from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from proctor.model import ChatMessageUser, ModelOutput
from proctor.scorer import Score, Scorer, Target
from proctor.solver import TaskState


def make_state(
    completion: str,
    *,
    choices: list[str] | None = None,
    chosen: list[int] | None = None,
    shuffle: int | None = None,
    metadata: dict[str, Any] | None = None,
    question: str = "What is it?",
) -> TaskState:
    state = TaskState(
        model="mock/model",
        sample_id=1,
        epoch=1,
        input=question,
        messages=[ChatMessageUser(content=question)],
        choices=choices,
        output=ModelOutput.from_content("mock/model", completion),
        metadata=metadata,
    )
    if shuffle is not None:
        state.choices.shuffle(random.Random(shuffle))
    for index in chosen or []:
        state.choices.mark_choice(index, True)
    return state


@pytest.fixture
def state_of() -> Callable[..., TaskState]:
    """Makes the state of a sample that the model has answered."""
    return make_state


@pytest.fixture
def judge() -> Callable[..., Score]:
    """Runs a scorer that waits for nothing on an answer and a target."""

    def run(scorer: Scorer, completion: str, target: str | list[str], **options: Any) -> Score:
        coroutine = scorer(make_state(completion, **options), Target(target))
        with pytest.raises(StopIteration) as stop:
            coroutine.send(None)  # type: ignore[attr-defined]  # a coroutine, as the scorer is an async function
        assert isinstance(stop.value.value, Score)
        return stop.value.value

    return run
