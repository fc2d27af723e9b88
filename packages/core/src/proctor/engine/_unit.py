"""A unit: one task with one model, and all that was decided about it before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor.concurrency import Connections
from proctor.dataset import Selection
from proctor.engine._errors import ErrorPolicy
from proctor.engine._options import RunOptions
from proctor.engine._task import Task
from proctor.model import GenerateConfig, Model
from proctor.schema import SandboxSpec
from proctor.scorer import Scorer, ScoreReducer, reducer_name
from proctor.solver import Chain

__all__ = ["Unit"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A task, a model, and everything about them that the options decide."""

    id: str
    task: Task
    model: Model
    roles: Mapping[str, Model]
    solver: Chain
    scorers: Sequence[Scorer]
    samples: Selection
    total: int | None
    """Samples times epochs, or ``None`` when the dataset does not know its length."""
    epochs: int
    reducers: Sequence[ScoreReducer] | None
    sandbox: SandboxSpec | None
    policy: ErrorPolicy
    retry_on_error: int
    connections: Connections
    """What holds back the requests of its model."""
    max_samples: int | None
    """Samples at once; ``None`` = as many as keep the connections busy."""
    message_limit: int | None
    token_limit: int | None
    turn_limit: int | None
    time_limit: float | None
    working_limit: float | None
    cost_limit: float | None
    options: RunOptions
    args: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What ``id`` was made of; see ``ingredients``."""
    label: str = ""
    """What tells it from units of the same name and model, such as ``temperature=0.2``; empty when nothing has to."""

    @property
    def name(self) -> str:
        """The task's name."""
        return self.task.name

    @property
    def title(self) -> str:
        """What a person knows it by: ``capitals temperature=0.2 (openai/gpt-5)``."""
        return f"{' '.join(filter(None, (self.name, self.label)))} ({self.model.name})"

    @property
    def reducer_names(self) -> list[str] | None:
        """Of the reducers, as a log has them."""
        return None if self.reducers is None else [reducer_name(reducer) for reducer in self.reducers]

    @property
    def config(self) -> GenerateConfig:
        """The generation settings above the level of a call, merged."""
        return self.model.config
