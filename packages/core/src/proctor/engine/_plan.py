"""From tasks, models and options to units. Nothing is sent yet: all that can be refused is refused here."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from proctor import plugins
from proctor.concurrency import Connections
from proctor.contracts import UsageError
from proctor.dataset import IterableDataset, Selection, select
from proctor.engine._errors import ErrorPolicy
from proctor.engine._identity import ingredients, unit_identity
from proctor.engine._label import labelled
from proctor.engine._load import TaskSource, find_solver
from proctor.engine._make_task import check_shared_args
from proctor.engine._options import RunOptions
from proctor.engine._sandboxes import picked_up
from proctor.engine._task import Epochs, Task, task_info
from proctor.engine._unit import Unit
from proctor.model import GenerateConfig, Model, check_base_url, generation_settings, get_model, make_model, use_models
from proctor.scorer import (
    Scorer,
    check_distinct,
    check_fields,
    check_reducers,
    check_targets,
    create_reducers,
    eval_scorers,
)
from proctor.solver import SolverLike, as_chain, solver_name

__all__ = ["make_plan", "resolve_models", "resolve_roles"]


def resolve_models(models: str | Model | Sequence[str | Model] | None, options: RunOptions) -> list[Model | None]:
    """The models to evaluate; ``[None]`` when none was named, so that each task's own counts."""
    if models is None:
        return [None]
    named: list[str | Model] = []
    for model in [models] if isinstance(models, (str, Model)) else models:
        named += _names(model) if isinstance(model, str) else [model]
    if not named:
        raise UsageError("no model was given: say which with --model, for example --model openai/gpt-4o-mini")
    return [_model(model, options) for model in named]


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if any(names) and not all(names):
        raise UsageError(
            f"--model {text!r} has an empty name: give names with one comma between them, such as openai/a,openai/b"
        )
    return [name for name in names if name]


def _model(model: str | Model, options: RunOptions) -> Model:
    if isinstance(model, Model):
        return get_model(model)  # the run knows of it then, and closes its connections
    base_url = check_base_url(options.model_base_url, "--model-base-url")
    return make_model(model, options.model_args, base_url=base_url)


def resolve_roles(roles: Mapping[str, Any]) -> dict[str, Model]:
    """Models by role, from names, models, or mappings ``{model: ..., <generation settings>}``.

    Raises:
        UsageError: for a role that is given anything else, or settings that do not exist.
    """
    return {role: _role_model(str(role), value) for role, value in roles.items()}


def _role_model(role: str, value: Any) -> Model:
    where = f"the model role {role!r}"
    settings = dict(value) if isinstance(value, Mapping) else {"model": value}
    name = settings.pop("model", None)
    if not name:
        raise UsageError(f"{where} names no model: give {role}={{model: provider/model, ...}}")
    base_url = check_base_url(settings.pop("base_url", None), f"{where}: base_url")
    args = settings.pop("args", None) or {}
    if not isinstance(args, Mapping):
        raise UsageError(f"{where} has args={args!r}: give a mapping of the provider's arguments to their values")
    config = generation_settings(settings, where)
    if isinstance(name, Model):
        return get_model(name, role=role, config=config)
    if not isinstance(name, str):
        raise UsageError(f"{where} is given {name!r}: give it a model, such as {role}=openai/gpt-4o-mini")
    return make_model(name, args, role=role, config=config, base_url=base_url)


def make_plan(sources: Sequence[TaskSource], models: Sequence[Model | None], options: RunOptions) -> list[Unit]:
    """Cross tasks and models.

    Raises:
        UsageError: for anything that can be known to be wrong before the first request.
    """
    roles = resolve_roles(options.model_roles)
    if len(sources) > 1:
        check_shared_args({source.name: source.make for source in sources}, options.task_args)
    units = []
    selected: dict[int, Selection] = {}
    for source in sources:
        for model in models:
            with use_models(model and model.with_config(options.config), roles):
                task = source.load(options.task_args)
                units.append(_unit(task, model, roles, options, selected))
    seen: dict[str, Unit] = {}
    for unit in units:
        if unit.id in seen:
            raise UsageError(f"task {unit.name!r} with model {unit.model.name} was planned twice: name it once")
        seen[unit.id] = unit
    return labelled(units)


def _unit(
    task: Task, model: Model | None, roles: Mapping[str, Model], options: RunOptions, selected: dict[int, Selection]
) -> Unit:
    if model is None:
        model = _model(task.model, options) if task.model else get_model()
    plugins.check_backend(plugins.get("model_providers", model.name.partition("/")[0]), options.async_backend)
    config = generation_settings(task.config, f"task {task.name!r}")
    model = _own_form(model, config.merge(options.config))
    roles = {role: _own_form(each) for role, each in {**resolve_roles(task.model_roles), **roles}.items()}
    sandbox = picked_up(options.sandbox or task.sandbox, task.folder)
    if sandbox is not None:
        plugins.check_backend(plugins.get("sandbox_providers", sandbox.type), options.async_backend)
    epochs = _epochs(task, options)
    samples = _select(task, options, selected)
    solver = _solver(task, options)
    scorers = task.scorers if options.score else []
    eval_scorers(scorers, task.metrics)  # refuses what is no scorer, or has no metric
    _check_samples(task, scorers, samples, solver)
    reducers = None if epochs.reducer is None else create_reducers(epochs.reducer)
    check_reducers(reducers or (), epochs.epochs)
    check_distinct(reducers or ())
    identity = ingredients(task, solver, scorers, samples, model, roles)
    return Unit(
        id=unit_identity(identity),
        task=task,
        model=model,
        roles=roles,
        solver=as_chain(solver),
        scorers=scorers,
        samples=samples,
        total=None if samples.length is None else samples.length * epochs.epochs,
        epochs=epochs.epochs,
        reducers=reducers,
        sandbox=sandbox,
        policy=ErrorPolicy(
            _first(options.fail_on_error, task.fail_on_error, True),
            _first(options.continue_on_fail, task.continue_on_fail, False),
        ),
        retry_on_error=_first(options.retry_on_error, task.retry_on_error, 0),
        connections=_connections(model, roles),
        max_samples=options.max_samples,
        message_limit=_first(options.message_limit, task.message_limit),
        token_limit=_first(options.token_limit, task.token_limit),
        turn_limit=_first(options.turn_limit, task.turn_limit),
        time_limit=_first(options.time_limit, task.time_limit),
        working_limit=_first(options.working_limit, task.working_limit),
        cost_limit=_first(options.cost_limit, task.cost_limit),
        options=options,
        args=task_info(task).params,
        identity=identity,
    )


def _own_form(model: Model, config: GenerateConfig | None = None) -> Model:
    """A unit's own form of ``model``, since retries and errors are told for each unit by itself."""
    return model.with_config(config or GenerateConfig(), counts_apart=True)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _connections(model: Model, roles: Mapping[str, Model]) -> Connections:
    with use_models(model, roles):  # they are made here, with the limit that task and options agreed on
        return model.connections()[1]


def _epochs(task: Task, options: RunOptions) -> Epochs:
    own = task.epochs or Epochs(1)
    return Epochs(options.epochs or own.epochs, _first(options.epochs_reducer, own.reducer))


def _select(task: Task, options: RunOptions, selected: dict[int, Selection]) -> Selection:
    """The samples that are wanted, in order; a task that several models share is shuffled once."""
    known = selected.get(id(task))
    if known is not None:
        return known
    dataset = task.dataset
    shuffle = options.sample_shuffle
    if shuffle is not None and shuffle is not False:
        if isinstance(dataset, IterableDataset):
            raise UsageError(f"task {task.name!r} makes its samples one by one, so they can't be shuffled")
        dataset.shuffle(None if shuffle is True else shuffle)
    try:
        selected[id(task)] = select(dataset, options.limit, _ids(options.sample_id))
    except UsageError as error:
        raise UsageError(f"task {task.name!r}: {error}") from error
    return selected[id(task)]


def _ids(ids: str | int | Sequence[str | int] | None) -> list[str | int] | None:
    return None if ids is None else [ids] if isinstance(ids, (str, int)) else list(ids)


_TELL_NOTHING = frozenset(
    {
        "generate",
        "system_message",
        "user_message",
        "assistant_message",
        "prompt_template",
        "chain_of_thought",
        "multiple_choice",
    }
)
"""Solvers that put nothing into the metadata of a sample, and run no code of a task's own."""


def _check_samples(task: Task, scorers: Sequence[Scorer], samples: Selection, solver: SolverLike) -> None:
    if isinstance(samples.dataset, IterableDataset):  # its samples are read when they run
        return
    try:
        check_targets(scorers, samples)
        try:
            check_fields(scorers, task.metrics, samples)
        except UsageError as error:
            if not _may_tell(solver):
                raise
            warnings.warn(f"task {task.name!r}: {error}", stacklevel=2)
    except UsageError as error:
        raise UsageError(f"task {task.name!r}: {error}") from error


def _may_tell(solver: SolverLike) -> bool:
    """Whether ``solver`` may put into the metadata of a sample what its dataset does not have."""
    found = ((solver_name(each), getattr(each, "__module__", "")) for each in as_chain(solver))
    return any(name not in _TELL_NOTHING or not module.startswith("proctor.solver.") for name, module in found)


def _solver(task: Task, options: RunOptions) -> SolverLike:
    solver = options.solver
    if solver is None:
        if options.solver_args:
            raise UsageError(f"-S {next(iter(options.solver_args))}=... is for a solver: name it with --solver")
        return task.steps()
    if isinstance(solver, str):
        try:
            solver = find_solver(solver, options.solver_args)
        except TypeError as error:
            raise UsageError(f"--solver {options.solver}: {error}") from error
    try:
        as_chain(solver)
    except TypeError as error:
        raise UsageError(f"the solver given for this run: {error}") from error
    return solver
