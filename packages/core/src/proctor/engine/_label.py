"""What tells units of one name from each other: a sweep is one task many times over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeAlias

from proctor.engine._unit import Unit
from proctor.model import Model, loggable_args, loggable_config, loggable_url
from proctor.registry import loggable

__all__ = ["labelled"]

_Setting: TypeAlias = "tuple[int, str]"
_MOST = 3  # settings that are combined; where more are needed, all that differ are named
_TRIED = 10  # differing settings among which combinations are looked for
_LONGEST = 24  # characters of a value


def labelled(units: Sequence[Unit]) -> list[Unit]:
    """``units``, those that share name and model with another labelled by the fewest settings that tell them apart.

    Arguments of the task are preferred to generation settings, those to roles, and those to arguments of the model.
    """
    namesakes: dict[str, list[int]] = {}
    for place, unit in enumerate(units):
        namesakes.setdefault(unit.name, []).append(place)
    named = list(units)
    for places in namesakes.values():
        if len({units[place].model.name for place in places}) < len(places):
            for place, label in zip(places, _labels([units[place] for place in places]), strict=True):
                named[place] = replace(units[place], label=label)
    return named


def _labels(units: Sequence[Unit]) -> list[str]:
    settings = [_settings(unit) for unit in units]
    known: dict[_Setting, None] = {}
    for each in settings:
        known.update(dict.fromkeys(each))
    # The sort is stable: within one source the order is that of the declaration.
    differing = [key for key in sorted(known, key=lambda key: key[0]) if len({each.get(key) for each in settings}) > 1]
    models = [unit.model.name for unit in units]
    chosen = _fewest(differing, models, settings)
    return [" ".join(f"{key[1]}={_short(each[key])}" for key in chosen if key in each) for each in settings]


def _fewest(
    differing: Sequence[_Setting], models: Sequence[str], settings: Sequence[Mapping[_Setting, str]]
) -> Sequence[_Setting]:
    for count in range(1, _MOST + 1):
        for keys in combinations(differing[:_TRIED], count):
            seen = {(model, *map(each.get, keys)) for model, each in zip(models, settings, strict=True)}
            if len(seen) == len(settings):
                return keys
    return differing


def _settings(unit: Unit) -> dict[_Setting, str]:
    """All that may differ between two runs of a task, as text, by source and name. Secrets are left out of each."""
    roles = {role: model.name for role, model in unit.roles.items()}
    judges = {f"{role}.{name}": value for role, model in unit.roles.items() for name, value in _config(model).items()}
    url = loggable_url(unit.model.api.base_url)
    sources: tuple[Mapping[str, Any], ...] = (
        loggable(dict(unit.args)),
        _config(unit.model),
        roles,
        judges,
        loggable_args(unit.model.args),
        {"base_url": url} if url else {},
    )
    return {(place, str(name)): _text(value) for place, source in enumerate(sources) for name, value in source.items()}


def _config(model: Model) -> Mapping[str, Any]:
    return loggable_config(model.config).model_dump(exclude_none=True)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
