"""What is looked at before the first request: settings that mean nothing, files that are not there, unknown graders."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from proctor.contracts import UsageError
from proctor.engine._options import RunOptions
from proctor.engine._unit import Unit
from proctor.log import contained_store, store_for
from proctor.model import get_model, use_models
from proctor.registry import is_registered, registry_info
from proctor.schema import UNUSED_FIELDS

__all__ = ["check_log_dir", "check_units"]

_DEEPEST = 20


def check_units(units: Sequence[Unit], options: RunOptions) -> None:
    """Warn of what has no effect, and refuse what can't work.

    Raises:
        UsageError: for a threshold that is no share or count, or a grader whose provider is unknown or whose key is
            missing.
    """
    for unit in units:
        _check_threshold(unit)
        _check_prices(unit, options)
        _warn_idle(unit, options)
        _check_named_models(unit)
    _warn_crowded(units, options)


def check_log_dir(log_dir: str, *, dry: bool = False) -> None:
    """Refuse a folder that can't be written to before anything is spent on samples for it.

    Args:
        log_dir: a path or an URL.
        dry: make nothing, not even the folder.

    Raises:
        UsageError: when it can't be written to, or no store is known for its scheme.
    """
    if not log_dir.strip():
        raise UsageError("--log-dir names no folder: give one, such as --log-dir ./logs")
    store, folder = store_for(log_dir)
    with contained_store(log_dir):
        store.check(folder, dry=dry)


def _check_threshold(unit: Unit) -> None:
    value = unit.policy.fail_on_error
    if isinstance(value, bool):
        return
    if not (0 <= value < math.inf) or (value > 1 and value != int(value)):
        raise UsageError(
            f"fail_on_error of task {unit.name!r} is {value:g}: give a share of the samples below 1 (0.1), or a whole "
            "count of them (5)"
        )


def _check_prices(unit: Unit, options: RunOptions) -> None:
    """Refuse to limit what can't be counted."""
    limit = "max_cost" if options.max_cost is not None else "cost_limit" if unit.cost_limit is not None else ""
    if not limit:
        return
    models = {unit.model.name, *(model.name for model in unit.roles.values())}
    models |= {name for (_, _, own), name in _named_models([unit.solver, *unit.scorers]) if own}
    unknown = [name for name in sorted(models) if options.prices.find(name) is None]
    if unknown:
        raise UsageError(
            f"task {unit.name!r}: {limit} is set, but what {', '.join(unknown)} costs is not known. Write a file such "
            f"as {{{unknown[0]}: {{input: 1.25, output: 10}}}}, in dollars per million tokens, and name it with "
            "--model-cost-config"
        )


def _warn_idle(unit: Unit, options: RunOptions) -> None:
    idle = [name for name in sorted(UNUSED_FIELDS) if getattr(unit.config, name) is not None]
    if idle:
        _warn(f"{unit.name!r} sets {', '.join(idle)}, which has no effect in this version")
    if unit.max_samples is None:
        return
    if unit.total is not None and unit.max_samples > unit.total:
        _warn(
            f"--max-samples {unit.max_samples} is more than the {unit.total} samples of {unit.name!r}: "
            "it has no effect there"
        )
        return
    # Who asked for no number of connections may well hold them back by the number of samples.
    most = unit.config.max_connections
    if most is not None and unit.max_samples < min(most, unit.total or most):
        _warn(
            f"--max-samples {unit.max_samples} is less than the {most} connections of {unit.name!r}: a sample has one "
            "request in flight at a time as a rule, so the others stay idle; leave --max-samples out to use them all"
        )


def _warn_crowded(units: Sequence[Unit], options: RunOptions) -> None:
    """Warn of tasks side by side where one at a time keeps all connections busy."""
    sharing: dict[str, list[Unit]] = {}
    for unit in units:
        sharing.setdefault(unit.connections.key, []).append(unit)
    # As many as there are keys do help: each has connections of its own.
    if options.max_tasks is None or options.max_tasks <= len(sharing):
        return
    crowds = [crowd for crowd in sharing.values() if len(crowd) > 1]
    if crowds and all(_fills(unit) for crowd in crowds for unit in crowd):
        unit = crowds[0][0]
        _warn(
            f"--max-tasks {options.max_tasks} makes nothing faster here: the samples of one task keep the connections "
            f"to {unit.model.name} busy, which its tasks share; leave --max-tasks out, or raise --max-connections"
        )


def _fills(unit: Unit) -> bool:
    """Whether its samples, which wait for the model most of the time, take all connections that there may be."""
    controller = unit.connections.controller
    most = unit.connections.gate.limit if controller is None else controller.limits.max
    # What a sandbox holds back, or what is done there meanwhile, leaves connections idle.
    if most is None or unit.sandbox is not None:
        return False
    at_once = [number for number in (unit.total, unit.max_samples) if number is not None]
    return min(at_once, default=most) >= most


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)


# Graders and other models that solvers and scorers name


def _check_named_models(unit: Unit) -> None:
    with use_models(unit.model, unit.roles):
        for (kind, component, own), name in dict.fromkeys(_named_models([unit.solver, *unit.scorers])):
            try:
                get_model(name)
            except UsageError as error:
                text = f"task {unit.name!r}: the model {name!r} of the {kind} {component!r} can't be used: {error}"
                if own:
                    raise type(error)(text) from error
                # The argument may mean something else there, such as a model that the component loads by itself.
                _warn(f"{text}. If it is asked, the samples will fail")


_Component: TypeAlias = tuple[str, str, bool]
"""Kind, name, and whether it is Proctor's own."""


def _named_models(value: Any, depth: int = 0) -> Iterator[tuple[_Component, str]]:
    """Every argument ``model`` of a component in ``value`` that is text of the form ``provider/model``."""
    if depth > _DEEPEST or value is None or isinstance(value, (str, bytes, int, float)):
        return
    if is_registered(value):
        info = registry_info(value)
        own = (getattr(value, "__module__", None) or "").partition(".")[0] == "proctor"
        for model in _texts(info.params.get("model")):
            if all(model.partition("/")):
                yield (info.kind, info.name, own), model
        yield from _named_models(list(info.params.values()), depth + 1)
    if isinstance(value, Mapping):
        yield from _named_models(list(value.values()), depth + 1)
    elif isinstance(value, Sequence):  # a chain of solvers is one too
        for item in value:
            yield from _named_models(item, depth + 1)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, (list, tuple)) else []
