"""The options that only an eval set has, declared as those of every evaluation are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, TypedDict, get_type_hints

from proctor.schema._option import Option
from proctor.schema._options import EvalOptions, option_table

__all__ = ["EvalSetOptions", "full_option_table", "set_option_table"]


class _SetOptions(TypedDict, total=False):
    retry_attempts: Annotated[
        int | None,
        Option(
            "--retry-attempts",
            "How often a task that failed is tried again.",
            "Eval set",
            "int",
            minimum=0,
            default="10",
        ),
    ]
    retry_wait: Annotated[
        float | None,
        Option(
            "--retry-wait",
            "Seconds before a failed task is tried again; doubled with each try. Other tasks run meanwhile.",
            "Eval set",
            "number",
            metavar="SECONDS",
            minimum=0,
            default="10",
        ),
    ]
    retry_max_wait: Annotated[
        float | None,
        Option(
            "--retry-max-wait",
            "The longest that --retry-wait becomes.",
            "Eval set",
            "number",
            metavar="SECONDS",
            minimum=0,
            default="600",
        ),
    ]
    on_change: Annotated[
        str | None,
        Option(
            "--on-change",
            "What to do with a task whose configuration is not that of its logs: refuse to run, or evaluate it anew.",
            "Eval set",
            "choice",
            choices=("refuse", "new"),
            default="refuse",
        ),
    ]
    clean: Annotated[
        bool | None,
        Option(
            "--clean",
            "At the end, delete the logs of earlier attempts whose samples are all in the newest log.",
            "Eval set",
            "flag",
        ),
    ]
    eval_set_id: Annotated[
        str | None,
        Option(
            "--id",
            "Id of a new eval set; a folder keeps the one it has.",
            "Eval set",
            env="PROCTOR_EVAL_SET_ID",
            metavar="ID",
        ),
    ]


class EvalSetOptions(EvalOptions, _SetOptions, total=False):
    """What ``eval_set(tasks, log_dir, model, **options)`` takes."""


@cache
def set_option_table() -> Mapping[str, Option]:
    """Each key that ``EvalSetOptions`` has beyond ``EvalOptions``, with its declaration."""
    hints = get_type_hints(_SetOptions, include_extras=True)
    return MappingProxyType(
        {key: next(note for note in hint.__metadata__ if isinstance(note, Option)) for key, hint in hints.items()}
    )


@cache
def full_option_table() -> Mapping[str, Option]:
    """Each key that ``EvalSetOptions`` has, with its declaration: those of an evaluation, then those of an eval set."""
    return MappingProxyType({**option_table(), **set_option_table()})
