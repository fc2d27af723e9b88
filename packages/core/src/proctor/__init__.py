"""Proctor evaluates language models: a task, one or more models, and a log with an honest score."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from proctor.engine import (
        Epochs,
        Task,
        eval,
        eval_async,
        eval_retry,
        eval_retry_async,
        score,
        score_async,
        task,
        task_with,
    )
    from proctor.sets import eval_set

# Everything is loaded on first use: `proctor --version` and a plugin's `hooks` module must not pay for the engine.
_HOME = dict.fromkeys(
    (
        "Epochs",
        "Task",
        "eval",
        "eval_async",
        "eval_retry",
        "eval_retry_async",
        "score",
        "score_async",
        "task",
        "task_with",
    ),
    "proctor.engine",
)
_HOME["eval_set"] = "proctor.sets"

__all__ = [
    "Epochs",
    "Task",
    "__version__",
    "eval",
    "eval_async",
    "eval_retry",
    "eval_retry_async",
    "eval_set",
    "score",
    "score_async",
    "task",
    "task_with",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'proctor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
