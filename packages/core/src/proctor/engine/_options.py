"""The options of a run, resolved once: eval() > task, with ``None`` for what nobody said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from proctor.concurrency import AdaptiveLimits, ConnectionPolicy
from proctor.contracts import UsageError
from proctor.engine._task import resolve_sandbox
from proctor.model import ModelPrices, generation_settings
from proctor.schema import GENERATE_FIELDS, GenerateConfig, SandboxSpec, SpelledValues, check_options, load_config

__all__ = ["RunOptions", "connection_policy", "resolve_options"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What ``eval()`` was told, by the names of ``EvalOptions``; generation settings stand together in ``config``."""

    config: GenerateConfig = field(default_factory=GenerateConfig)
    task_args: Mapping[str, Any] = field(default_factory=dict)
    model_args: Mapping[str, Any] = field(default_factory=dict)
    model_base_url: str | None = None
    model_roles: Mapping[str, Any] = field(default_factory=dict)
    solver: Any = None
    solver_args: Mapping[str, Any] = field(default_factory=dict)
    sandbox: SandboxSpec | None = None
    sandbox_cleanup: bool = True
    limit: int | tuple[int, int] | None = None
    sample_id: str | int | Sequence[str | int] | None = None
    sample_shuffle: bool | int | None = None
    epochs: int | None = None
    epochs_reducer: str | Sequence[str] | None = None
    score: bool = True
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    max_rpm: int | None = None
    max_tpm: int | None = None
    share: str | None = None
    max_samples: int | None = None
    max_tasks: int | None = None
    max_subprocesses: int | None = None
    max_sandboxes: int | None = None
    async_backend: str = "asyncio"
    message_limit: int | None = None
    token_limit: int | None = None
    turn_limit: int | None = None
    time_limit: float | None = None
    working_limit: float | None = None
    cost_limit: float | None = None
    prices: ModelPrices = field(default_factory=ModelPrices)
    max_cost: float | None = None
    max_tokens_total: int | None = None
    estimate: int | None = None
    stop_timeout: float | None = None
    fail_on_error: bool | float | None = None
    continue_on_fail: bool | None = None
    retry_on_error: int | None = None
    log_dir: str = "./logs"
    log_format: Literal["eval", "json"] = "eval"
    log_samples: bool = True
    log_images: bool = True
    log_model_api: bool | None = None
    log_buffer: int | None = None
    display: str | None = None
    score_display: bool = True
    plugins: tuple[str, ...] = ()
    disable_plugins: tuple[str, ...] = ()
    observers: tuple[str, ...] = ()


def connection_policy(options: RunOptions) -> ConnectionPolicy:
    """What the options say of all connections of the run.

    Raises:
        UsageError: for bounds that are none.
    """
    config = options.config
    AdaptiveLimits.of(config.adaptive_connections)
    if config.max_connections is not None and config.adaptive_connections not in (None, False):
        raise UsageError(
            "max_connections is a fixed number and adaptive_connections a moving one: give one of them "
            f"(--adaptive-connections {config.max_connections} moves up to that number)"
        )
    return ConnectionPolicy(
        max_connections=config.max_connections,
        adaptive=config.adaptive_connections,
        max_rpm=options.max_rpm,
        max_tpm=options.max_tpm,
        share=options.share,
    )


_TUPLES = ("tags", "plugins", "disable_plugins", "observers")


def resolve_options(options: Mapping[str, Any]) -> RunOptions:
    """Check ``options`` and bring them into the form that the engine uses.

    Raises:
        UsageError: for an unknown name, a value out of range or a configuration file that can't be read.
    """
    try:
        check_options(options)
        if options.get("estimate") and options.get("dry_run"):
            raise UsageError("dry_run sends nothing and estimate runs a pilot: leave one of the two out")
        said = {name: value for name, value in options.items() if value is not None}
        for name, target in (("task_config", "task_args"), ("model_config", "model_args")):
            if file := said.pop(name, None):
                given = said.get(target, {})
                said[target] = SpelledValues({**load_config(file), **given}, getattr(given, "texts", None))
        if (costs := said.pop("model_cost_config", None)) is not None:
            named = isinstance(costs, str)
            table = load_config(costs) if named else costs
            said["prices"] = ModelPrices.of(table, costs if named else "model_cost_config")
        generate = load_config(file) if (file := said.pop("generate_config", None)) else {}
        generate |= {name: said.pop(name) for name in list(said) if name in GENERATE_FIELDS}
        config = generation_settings(generate, "the run")
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error
    if "proctor" in said.get("metadata", ()):
        raise UsageError("the metadata key 'proctor' is what Proctor itself says of the run: take another name")
    if "sandbox" in said:
        said["sandbox"] = resolve_sandbox(said["sandbox"])
    for name in _TUPLES:
        if name in said:
            said[name] = (said[name],) if isinstance(said[name], str) else tuple(said[name])
    return RunOptions(config=config, **said)
