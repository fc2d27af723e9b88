"""What a log is scored with unless somebody says otherwise: its own scorers and models, made again from its header."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from proctor.contracts import UsageError
from proctor.engine._load import learn_components
from proctor.engine._options import RunOptions
from proctor.engine._plan import resolve_roles
from proctor.model import GenerateConfig, Model, check_base_url, make_model
from proctor.registry import create
from proctor.schema import EvalLog, EvalScorer, ModelConfig, without_removed
from proctor.scorer import MetricsSpec, Scorer, declared_metrics

__all__ = ["log_metrics", "log_models", "log_scorers"]


def log_scorers(header: EvalLog) -> list[Scorer]:
    """The scorers that the log declares, with the code of its task's file when they are not known.

    Raises:
        UsageError: there are none, or their code is not at hand.
    """
    declared = header.eval.scorers or []
    if not declared:
        raise UsageError("the log declares no scorer: name one with --scorer NAME or --scorer FILE@NAME.")
    try:
        return _all_made(declared)
    except LookupError:
        learn_components(header.eval.task_file)
    try:
        return _all_made(declared)
    except LookupError as error:
        raise UsageError(
            f"the log's scorers can't be made here ({error.args[0]}): name one with --scorer FILE@NAME, or run this "
            "in the folder in which the log was made."
        ) from error


def _all_made(declared: Sequence[EvalScorer]) -> list[Scorer]:
    names = {one.name for one in declared}
    return [_made(one, names) for one in declared]


def _made(declared: EvalScorer, names: Collection[str]) -> Scorer:
    options = declared.options or {}
    try:
        scorer: Scorer = create("scorer", declared.name, **options)
    except LookupError:
        # One that was appended beside another of its name has a number behind it, as f11 beside f1.
        bases = [name for name in names if declared.name.removeprefix(name).isdecimal() and declared.name != name]
        if not bases:
            raise
        scorer = create("scorer", min(bases, key=len), **options)
    return scorer


def log_metrics(header: EvalLog) -> MetricsSpec | None:
    """The metrics that the log's task has in place of those of its scorers, if it has any.

    Raises:
        UsageError: the code of one is not at hand.
    """
    if not header.eval.metrics:
        return None
    missing: list[str] = []
    metrics: MetricsSpec = declared_metrics(header.eval.metrics, missing)
    if missing and learn_components(header.eval.task_file):
        missing.clear()
        metrics = declared_metrics(header.eval.metrics, missing)
    if missing:
        raise UsageError(
            f"the log's metrics can't be made here (there is no {', '.join(missing)}): name others with --metric NAME, "
            "or run this in the folder in which the log was made."
        )
    return metrics


def log_models(header: EvalLog, named: str | None, options: RunOptions) -> tuple[Model | None, dict[str, Model]]:
    """The model that was evaluated and those in roles, as the log has them and the options change them.

    A model of the log's own that can't be made here (its key or provider is missing) is left out: a scorer that asks
    for it says so.

    Raises:
        UsageError: a model that was asked for can't be made.
    """
    spec = header.eval
    if named is not None:
        base_url = check_base_url(options.model_base_url, "--model-base-url")
        model: Model | None = make_model(named, options.model_args, base_url=base_url)
    else:
        settings = ModelConfig(
            model=spec.model, config=spec.model_generate_config, base_url=spec.model_base_url, args=spec.model_args
        )
        model = _from_log(settings)
    roles: dict[str, Model] = {}
    for role, configs in (spec.model_roles or {}).items():
        config = configs[0] if isinstance(configs, list) else configs
        if role not in options.model_roles and (made := _from_log(config, role)) is not None:
            roles[role] = made
    roles |= resolve_roles(options.model_roles)
    return model and model.with_config(options.config), roles


def _from_log(settings: ModelConfig, role: str | None = None) -> Model | None:
    if settings.model in ("none", "none/none"):
        return None
    args = without_removed(settings.args)
    config = GenerateConfig(**without_removed(settings.config.to_dict()))
    try:
        return make_model(settings.model, args, role=role, config=config, base_url=settings.base_url)
    except UsageError:
        return None
