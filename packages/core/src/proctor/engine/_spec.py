"""What the log says of a unit before its first sample."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import proctor
from proctor import plugins
from proctor.concurrency import cpu_budget
from proctor.engine._identity import compacted
from proctor.engine._task import task_info
from proctor.engine._unit import Unit
from proctor.log import LogIndex, now_iso_seconds
from proctor.model import Model, loggable_args, loggable_config, loggable_url
from proctor.registry import loggable
from proctor.schema import (
    EvalConfig,
    EvalDataset,
    EvalPlan,
    EvalRevision,
    EvalSpec,
    ModelConfig,
    SandboxSpec,
    redact,
    redact_url,
    short_uuid,
)
from proctor.scorer import eval_scorers, metric_definitions
from proctor.solver import plan_steps

__all__ = ["eval_plan", "eval_spec", "loggable_sandbox", "revision"]

_MANY = 100_000  # sample ids beyond this are not listed in the log


def eval_plan(unit: Unit) -> EvalPlan:
    """The solvers and the generation settings."""
    return EvalPlan(steps=plan_steps(unit.solver), config=loggable_config(unit.config))


def eval_spec(
    unit: Unit,
    run_id: str,
    revision: EvalRevision | None,
    *,
    task_id: str | None = None,
    eval_set_id: str | None = None,
    prior: Sequence[LogIndex] = (),
) -> EvalSpec:
    """Task, model, dataset and options. Secrets are in none of them.

    Args:
        unit: what is evaluated.
        run_id: the run's id.
        revision: the git revision of the working directory.
        task_id: the id that all attempts at the unit share; made up when not given.
        eval_set_id: the set that the evaluation belongs to.
        prior: the earlier logs of the evaluation, whose id it goes on with.
    """
    task, options = unit.task, unit.options
    info = task_info(task)
    return EvalSpec(
        eval_set_id=eval_set_id,
        eval_id=short_uuid(),
        run_id=run_id,
        created=now_iso_seconds(),
        task=task.name,
        task_id=task_id or (prior[-1].header.eval.task_id if prior else "") or short_uuid(),
        task_version=task.version,
        task_file=os.path.relpath(task.file) if task.file else None,
        task_display_name=task.display_name or task.name,
        task_registry_name=info.name,
        task_attribs=loggable(dict(info.attribs)),
        task_args=loggable(dict(info.params)),
        task_args_passed=loggable(dict(info.params_passed)),
        solver=options.solver if isinstance(options.solver, str) else None,
        solver_args=loggable(dict(options.solver_args)) or None,
        tags=list(dict.fromkeys([*task.tags, *options.tags])) or None,
        dataset=_dataset(unit),
        sandbox=loggable_sandbox(unit.sandbox),
        model=unit.model.name,
        model_generate_config=loggable_config(unit.config),
        model_base_url=loggable_url(unit.model.api.base_url),
        model_args=loggable_args(unit.model.args),
        model_roles={role: _role(model) for role, model in unit.roles.items()} or None,
        config=_config(unit),
        revision=revision,
        packages={"proctor-core": proctor.__version__, **plugins.used()},
        metadata={**redact({**task.metadata, **options.metadata}), "proctor": _own(unit, prior)},
        scorers=eval_scorers(unit.scorers, task.metrics) or None,
        metrics=metric_definitions(task.metrics) if task.metrics else None,
    )


def _own(unit: Unit, prior: Sequence[LogIndex]) -> dict[str, Any]:
    """What only Proctor reads: identity and its ingredients, CPUs, plugins and their faults, and earlier logs."""
    faults = [loggable(asdict(fault)) for fault in plugins.faults()]
    resumes = [index.location_from(unit.options.log_dir) for index in prior]
    more = {"label": unit.label, "plugin_faults": faults, "resumes": resumes, "options": _own_options(unit)}
    own = {
        "unit": unit.id,
        "identity": compacted(dict(unit.identity)),
        "plugins": plugins.used(),
        "cpu_budget": asdict(cpu_budget()),
    }
    return {**own, **{name: value for name, value in more.items() if value}}


def _own_options(unit: Unit) -> dict[str, Any]:
    """Options that a resume needs and that ``EvalConfig`` has no field for, or not in full."""
    options = unit.options
    found: dict[str, Any] = {
        "model_cost_config": options.prices.table() or None,
        "max_cost": options.max_cost,
        "max_tokens_total": options.max_tokens_total,
        "plugins": list(options.plugins) or None,
        "disable_plugins": list(options.disable_plugins) or None,
    }
    for name in ("time_limit", "working_limit"):
        seconds = getattr(unit, name)
        found[name] = None if seconds == _whole(seconds) else seconds
    return {name: value for name, value in found.items() if value is not None}


def loggable_sandbox(spec: SandboxSpec | None) -> SandboxSpec | None:
    """``spec`` as the log may have it: its configuration without secrets."""
    if spec is None or (config := redact(spec.config)) is spec.config:
        return spec
    return spec.model_copy(update={"config": config})


def _dataset(unit: Unit) -> EvalDataset:
    dataset = unit.samples.dataset
    length = unit.samples.length
    ids = unit.samples.ids() if length is not None and length <= _MANY else None
    return EvalDataset(
        name=dataset.name,
        location=dataset.location,
        samples=unit.samples.total,
        sample_ids=None if ids is None else list(ids),
        shuffled=dataset.shuffled,
    )


def _role(model: Model) -> ModelConfig:
    return ModelConfig(
        model=model.name,
        config=loggable_config(model.config),
        base_url=loggable_url(model.api.base_url),
        args=loggable_args(model.args),
    )


def _config(unit: Unit) -> EvalConfig:
    options = unit.options
    settings: Mapping[str, Any] = {
        "limit": list(options.limit) if isinstance(options.limit, tuple) else options.limit,
        "sample_id": list(ids) if isinstance(ids := options.sample_id, tuple) else ids,
        "sample_shuffle": options.sample_shuffle,
        "epochs": unit.epochs,
        "epochs_reducer": unit.reducer_names,
        "fail_on_error": unit.policy.fail_on_error,
        "continue_on_fail": unit.policy.continue_on_fail,
        "retry_on_error": unit.retry_on_error or None,
        "message_limit": unit.message_limit,
        "token_limit": unit.token_limit,
        "turn_limit": unit.turn_limit,
        "time_limit": _whole(unit.time_limit),
        "working_limit": _whole(unit.working_limit),
        "cost_limit": unit.cost_limit,
        "max_samples": unit.max_samples or unit.connections.gate.limit,
        "max_tasks": options.max_tasks,
        "max_subprocesses": options.max_subprocesses,
        "max_sandboxes": options.max_sandboxes,
        "sandbox_cleanup": options.sandbox_cleanup,
        "log_samples": options.log_samples,
        "log_images": options.log_images,
        "log_model_api": options.log_model_api,
        "log_buffer": options.log_buffer,
        "score_display": options.score_display,
    }
    return EvalConfig(**settings)


def _whole(seconds: float | None) -> int | None:
    # The peer's field is an integer; a limit below a second must not read as none at all.
    return None if seconds is None else max(1, round(seconds))


@lru_cache(maxsize=1)
def revision(folder: str) -> EvalRevision | None:
    """The git revision of ``folder``; ``None`` outside a repository, without git or without a commit. Blocks."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=5, check=True)
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "--short", "HEAD")
        dirty = bool(git("status", "--porcelain", "--untracked-files=no"))
        origin = git("config", "--default", "", "--get", "remote.origin.url")
    except (OSError, subprocess.SubprocessError):
        return None
    # An address may carry a password (https://user:secret@host/...), which has no place in a log.
    return EvalRevision(origin=redact_url(origin), commit=commit, dirty=dirty)
