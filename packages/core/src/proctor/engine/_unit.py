"""A unit: one task with one model. Planning it, and what the log says of it before it runs."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.concurrency import Connections
from proctor.dataset import IterableDataset, Selection
from proctor.engine._errors import ErrorPolicy
from proctor.engine._options import RunOptions
from proctor.engine._task import Task, task_info
from proctor.model import GenerateConfig, Model, loggable_args, loggable_url
from proctor.registry import RegistryInfo, loggable
from proctor.schema import SandboxSpec, redact
from proctor.scorer import Scorer, ScoreReducer
from proctor.solver import SolverLike, plan_steps

__all__ = ["Unit", "unit_identity"]

# What may change between two runs of the same work: how it is run, not what is asked.
_NOT_IDENTITY = (
    "max_retries",
    "timeout",
    "attempt_timeout",
    "stream_idle_timeout",
    "max_connections",
    "adaptive_connections",
    "batch",
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A task, a model, and everything about them that the options decide."""

    id: str
    task: Task
    model: Model
    roles: Mapping[str, Model]
    solver: SolverLike
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
    label: str = ""
    """What tells it from units of the same name and model, such as ``temperature=0.2``; empty when nothing has to."""

    @property
    def name(self) -> str:
        """The task's name."""
        return self.task.name

    @property
    def config(self) -> GenerateConfig:
        """The generation settings above the level of a call, merged."""
        return self.model.config


def unit_identity(
    task: Task,
    solver: SolverLike,
    scorers: Sequence[Scorer],
    samples: Selection,
    model: Model,
    roles: Mapping[str, Model],
) -> str:
    """128 bits, in hex, that name the work: equal for two runs whose samples can stand in one result.

    Limit, selection, order, epochs and gates are not in it: they say which samples are wanted, and when. Neither are
    secrets, so that a new key goes on with the work of the old one, and nobody finds a key by trying.
    """
    info = task_info(task)
    described = {
        "v": 1,
        "task": _origin(info),
        "args": loggable(dict(info.params)),
        "version": task.version,
        "solver": [step.model_dump(exclude_none=True) for step in plan_steps(solver)],
        "scorers": [loggable(scorer) for scorer in scorers],
        "model": _described(model),
        "roles": {role: _described(each) for role, each in sorted(roles.items())},
        "dataset": _fingerprint(samples),
    }
    text = json.dumps(described, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _origin(info: RegistryInfo) -> str:
    """``package/name`` for a task of a package, else ``path/of/file.py@name``, the same wherever a copy of it lies."""
    package = info.module.partition(".")[0]
    if hasattr(sys.modules.get(package), "__path__"):
        return f"{package}/{info.name}"
    if not info.file:
        return info.name
    file = Path(info.file)
    return f"{Path(os.path.relpath(file, _root(file.parent))).as_posix()}@{info.name}"


def _root(folder: Path) -> Path:
    """The top of the repository that ``folder`` is in; outside of any, the working directory."""
    return next((top for top in (folder, *folder.parents) if (top / ".git").exists()), Path.cwd())


def _described(model: Model) -> dict[str, Any]:
    config = model.config.model_dump(exclude_none=True, exclude=set(_NOT_IDENTITY))
    return {
        "name": model.name,
        "base_url": loggable_url(model.api.base_url),
        "args": loggable_args(model.args),
        "config": redact(config),
    }


def _fingerprint(samples: Selection) -> dict[str, Any]:
    """What tells one dataset from another without reading its samples: name, size and all ids, in whatever order."""
    dataset = samples.dataset
    total = 0
    if not isinstance(dataset, IterableDataset):
        # A sum, since sorting a million ids would hold all of them in memory at once.
        digest, number = hashlib.blake2b, int.from_bytes
        for id in dataset.ids():
            total += number(digest(str(id).encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big")
    return {"name": dataset.name, "size": samples.total, "ids": f"{total % (1 << 128):032x}"}
