"""A plan made again from what a log says: the task, the model, and the options of its run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.contracts import UsageError
from proctor.engine._identity import logged_ingredients, logged_options
from proctor.engine._load import find_tasks
from proctor.engine._options import RunOptions
from proctor.engine._plan import make_plan, resolve_models
from proctor.engine._unit import Unit
from proctor.model import GenerateConfig, loggable_url
from proctor.schema import EvalLog, ModelConfig, is_removed, without_removed

__all__ = ["planned_again"]

# What a log's `config` says of its run, by the names of the options; the others are told anew or hold by default.
_KEPT = (
    "sample_id",
    "epochs",
    "epochs_reducer",
    "fail_on_error",
    "continue_on_fail",
    "retry_on_error",
    "message_limit",
    "token_limit",
    "turn_limit",
    "time_limit",
    "working_limit",
    "cost_limit",
    "sandbox_cleanup",
    "log_images",
    "log_model_api",
    "log_buffer",
    "score_display",
)
_IN_FULL = ("time_limit", "working_limit")  # ``config`` has them in whole seconds


def planned_again(header: EvalLog, options: RunOptions, given: frozenset[str]) -> Unit:
    """The unit that the log's run would have today.

    Args:
        header: of the log.
        options: of the resume.
        given: the names of those that were said; the log's hold for the others.

    Raises:
        UsageError: the task or the model can't be made again.
    """
    model = header.eval.model
    mine = _options(header, options, given)
    source = find_tasks(_task_of(header))
    units = make_plan(source, resolve_models(model, mine), mine)
    url = header.eval.model_base_url
    if mine.model_base_url is None and loggable_url(units[0].model.api.base_url) != url and url is not None:
        mine = replace(mine, model_base_url=url)
        units = make_plan(source, resolve_models(model, mine), mine)
    [unit] = units
    return unit


def _task_of(header: EvalLog) -> str:
    """What ``proctor eval`` would be given."""
    spec = header.eval
    name = spec.task_registry_name or spec.task
    origin = str((logged_ingredients(header) or {}).get("task", ""))
    if "@" not in origin and "/" in origin:
        return origin  # a task of a package
    file = spec.task_file
    if not file:
        raise UsageError(
            f"{header.location} is of the task {spec.task!r}, which was given as an object: no file is known to make "
            "it from. Resume from tasks in files, or evaluate it anew."
        )
    path = origin.partition("@")[0]
    candidates = [Path(file), *(top / path for top in (Path.cwd(), *Path.cwd().parents) if path)]
    for candidate in candidates:
        if candidate.is_file():
            return f"{candidate}@{name}"
    raise UsageError(
        f"the task file {file} of {header.location} is not there. Go to the folder that its run was started in "
        f"(this is {os.getcwd()}), and try again."
    )


def _options(header: EvalLog, options: RunOptions, given: frozenset[str]) -> RunOptions:
    spec = header.eval
    config = spec.config
    own = logged_options(header)
    kept = {name: value for name in _KEPT if name not in given and (value := getattr(config, name)) is not None}
    kept |= {name: own[name] for name in _IN_FULL if name not in given and name in own}
    logged = dict(without_removed(_config(spec.model_generate_config)))
    if {"max_connections", "adaptive_connections"} & given:
        logged = {name: value for name, value in logged.items() if not name.endswith("_connections")}
    limit = tuple(config.limit) if isinstance(config.limit, list) else config.limit
    restored: dict[str, Any] = {
        "config": GenerateConfig(**logged).merge(options.config),
        "task_args": without_removed(spec.task_args_passed),
        "model_args": {**without_removed(spec.model_args), **options.model_args},
        "model_roles": {role: _role(header, role, model) for role, model in (spec.model_roles or {}).items()},
        "solver": spec.solver,
        "solver_args": without_removed(spec.solver_args or {}),
        "score": spec.scorers is not None,
        "tags": tuple(spec.tags or ()),
        "metadata": {name: value for name, value in (spec.metadata or {}).items() if name != "proctor"},
        "limit": limit,
        "sample_shuffle": config.sample_shuffle,
        **kept,
    }
    if spec.sandbox is not None and not is_removed(spec.sandbox.config):
        restored["sandbox"] = spec.sandbox
    if config.sample_shuffle is True and limit is not None:
        # Shuffled without a seed, another run would take other samples: those of the log are named instead.
        if spec.dataset.sample_ids is None:
            raise UsageError(
                f"{header.location} took a part of its samples in an order by chance, and does not say which they "
                "were: it can't be gone on from. Shuffle with a seed (--sample-shuffle=1)."
            )
        restored |= {"sample_id": list(spec.dataset.sample_ids), "limit": None, "sample_shuffle": None}
    return replace(options, **restored)


def _config(config: GenerateConfig) -> Mapping[str, Any]:
    return config.model_dump(exclude_none=True)


def _role(header: EvalLog, role: str, model: ModelConfig | list[ModelConfig]) -> dict[str, Any]:
    if isinstance(model, list):
        raise UsageError(
            f"{header.location} has several models in the role {role!r}, which this Proctor does not know."
        )
    settings = without_removed(_config(model.config))
    made = {"model": model.model, "base_url": model.base_url, "args": without_removed(model.args), **settings}
    return {name: value for name, value in made.items() if value is not None}
