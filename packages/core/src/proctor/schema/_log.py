"""The evaluation log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import Field

from proctor.schema._base import Record
from proctor.schema._config import GenerateConfig
from proctor.schema._output import ModelUsage
from proctor.schema._sample import EvalError, EvalSample, SandboxSpec
from proctor.schema._score import Provenance, Score

__all__ = [
    "ConfigUpdate",
    "EvalConfig",
    "EvalDataset",
    "EvalLog",
    "EvalMetric",
    "EvalPlan",
    "EvalPlanStep",
    "EvalResults",
    "EvalRevision",
    "EvalSampleReductions",
    "EvalSampleScore",
    "EvalScore",
    "EvalScorer",
    "EvalSpec",
    "EvalStats",
    "EvalStatus",
    "HeadlineMetric",
    "LogUpdate",
    "MetadataEdit",
    "ModelConfig",
    "TagsEdit",
    "own_metadata",
]

EvalStatus: TypeAlias = Literal["started", "success", "cancelled", "error"]


class EvalDataset(Record):
    """The dataset. ``samples`` counts before limit, ``sample_ids`` stand after limit and shuffle, in run order."""

    name: str | None = None
    location: str | None = None
    samples: int | None = None
    sample_ids: list[int | str] | None = None
    shuffled: bool | None = None


class EvalConfig(Record):
    """The options of an evaluation; time limits are in seconds, ``cost_limit`` in dollars."""

    limit: int | list[int] | None = None
    sample_id: str | int | list[str | int] | None = None
    sample_shuffle: bool | int | None = None
    epochs: int | None = None
    epochs_reducer: list[str] | None = None
    approval: Any = None
    review: Any = None
    sentinel: Any = None
    notification: Any = None
    fail_on_error: bool | float | None = None
    continue_on_fail: bool | None = None
    retry_on_error: int | None = None
    score_on_error: bool | None = None
    message_limit: int | None = None
    token_limit: int | None = None
    token_limit_type: str | None = None
    turn_limit: int | None = None
    time_limit: int | None = None
    working_limit: int | None = None
    cost_limit: float | None = None
    max_samples: int | None = None
    max_dataset_memory: Any = None
    max_tasks: int | None = None
    max_subprocesses: int | None = None
    max_sandboxes: int | None = None
    sandbox_cleanup: bool | None = None
    sandbox_prebuilt: bool | None = None
    log_samples: bool | None = None
    log_realtime: bool | None = None
    log_images: bool | None = None
    log_model_api: bool | None = None
    log_buffer: int | None = None
    log_shared: int | None = None
    score_display: bool | None = None
    acp_server: Any = None


class EvalScorer(Record):
    """A scorer as it was declared."""

    name: str
    options: dict[str, Any] | None = None
    metrics: Any = None
    metadata: dict[str, Any] | None = None


class EvalRevision(Record):
    """The git revision of the working directory."""

    type: Literal["git"] = "git"
    origin: str
    commit: str
    dirty: bool | None = None


class ModelConfig(Record):
    """A model in a role."""

    model: str
    config: GenerateConfig = Field(default_factory=GenerateConfig)
    base_url: str | None = None
    args: dict[str, Any] = Field(default_factory=dict)


class HeadlineMetric(Record):
    """Which metric stands for the whole evaluation."""

    scorer: str | None = None
    score: str | None = None
    metric: str | None = None
    reducer: str | None = None


class EvalSpec(Record):
    """What was evaluated: the task, the model and how."""

    eval_set_id: str | None = None
    eval_id: str = ""
    run_id: str = ""
    created: str
    task: str
    task_id: str = ""
    task_version: int | str = 0
    task_file: str | None = None
    task_display_name: str | None = None
    task_description: str | None = None
    task_registry_name: str | None = None
    task_attribs: dict[str, Any] = Field(default_factory=dict)
    task_args: dict[str, Any] = Field(default_factory=dict)
    task_args_passed: dict[str, Any] = Field(default_factory=dict)
    solver: str | None = None
    solver_args: dict[str, Any] | None = None
    solver_args_passed: dict[str, Any] | None = None
    tags: list[str] | None = None
    dataset: EvalDataset
    sandbox: SandboxSpec | None = None
    model: str
    model_generate_config: GenerateConfig = Field(default_factory=GenerateConfig)
    model_base_url: str | None = None
    model_args: dict[str, Any] = Field(default_factory=dict)
    model_roles: dict[str, ModelConfig | list[ModelConfig]] | None = None
    config: EvalConfig
    revision: EvalRevision | None = None
    packages: dict[str, str] = Field(default_factory=dict)
    metadata: dict[str, Any] | None = None
    viewer: Any = None
    scorers: list[EvalScorer] | None = None
    metrics: Any = None
    headline_metric: HeadlineMetric | None = None
    shards: Any = None


class EvalPlanStep(Record):
    """One solver of the plan. ``params`` holds defaults too, ``params_passed`` only what was given."""

    solver: str
    params: dict[str, Any] = Field(default_factory=dict)
    params_passed: dict[str, Any] = Field(default_factory=dict)


class EvalPlan(Record):
    """The solvers, in order."""

    name: str = "plan"
    steps: list[EvalPlanStep] = Field(default_factory=list)
    finish: EvalPlanStep | None = None
    config: GenerateConfig = Field(default_factory=GenerateConfig)


class EvalMetric(Record):
    """A metric; ``group`` names the function when it returned several values."""

    name: str
    value: int | float
    group: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] | None = None


class EvalScore(Record):
    """The metrics of one scorer under one reducer."""

    name: str
    scorer: str
    reducer: str | None = None
    scored_samples: int | None = None
    unscored_samples: int | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    metrics: dict[str, EvalMetric] = Field(default_factory=dict)
    metadata: dict[str, Any] | None = None


class EvalResults(Record):
    """The outcome. ``total_samples`` = samples x epochs; ``completed_samples`` = those that ended without an error."""

    total_samples: int = 0
    completed_samples: int = 0
    logged_samples: int | None = None
    early_stopping: Any = None
    scores: list[EvalScore] = Field(default_factory=list)
    headline: HeadlineMetric | None = None
    metadata: dict[str, Any] | None = None


def own_metadata(of: EvalSpec | EvalResults) -> Mapping[str, Any]:
    """What Proctor says of an evaluation or its results: ``metadata["proctor"]``, empty in logs of other programs."""
    own = (of.metadata or {}).get("proctor")
    return own if isinstance(own, dict) else {}


class EvalStats(Record):
    """When it ran and what it used."""

    started_at: str = ""
    completed_at: str = ""
    model_usage: dict[str, ModelUsage] = Field(default_factory=dict)
    role_usage: dict[str, ModelUsage] = Field(default_factory=dict)
    connection_limit_history: list[dict[str, Any]] = Field(default_factory=list)


class EvalSampleScore(Score):
    """A reduced score of a sample."""

    sample_id: int | str | None = None


class EvalSampleReductions(Record):
    """The scores of all samples, reduced over epochs."""

    scorer: str
    reducer: str | None = None
    samples: list[EvalSampleScore] = Field(default_factory=list)


class TagsEdit(Record):
    """Tags that are added to a log, and those that are taken away."""

    type: Literal["tags"] = "tags"
    tags_add: list[str] = Field(default_factory=list)
    tags_remove: list[str] = Field(default_factory=list)


class MetadataEdit(Record):
    """Metadata keys that are set in a log, and those that are taken away."""

    type: Literal["metadata"] = "metadata"
    metadata_set: dict[str, Any] = Field(default_factory=dict)
    metadata_remove: list[str] = Field(default_factory=list)


class LogUpdate(Record):
    """A change of tags or metadata after the run."""

    edits: list[dict[str, Any]] = Field(default_factory=list)
    provenance: Provenance


class ConfigUpdate(Record):
    """A change of options during the run."""

    changes: list[dict[str, Any]] = Field(default_factory=list)
    scope: str = "task"
    provenance: Provenance


class EvalLog(Record):
    """A log. ``samples`` and ``reductions`` are ``None`` when only the header was read; ``location`` says where."""

    version: int = 2
    status: EvalStatus = "started"
    eval: EvalSpec
    plan: EvalPlan = Field(default_factory=EvalPlan)
    results: EvalResults | None = None
    stats: EvalStats = Field(default_factory=EvalStats)
    error: EvalError | None = None
    invalidated: bool = False
    log_updates: list[LogUpdate] | None = None
    config_updates: list[ConfigUpdate] | None = None
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    samples: list[EvalSample] | None = None
    reductions: list[EvalSampleReductions] | None = None
    location: str = Field(default="", exclude=True)
    etag: str | None = Field(default=None, exclude=True)
