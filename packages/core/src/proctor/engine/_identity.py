"""What makes two units the same work: the ingredients, the number made of them, and what differs between two."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from proctor.dataset import IterableDataset, Selection
from proctor.engine._task import Task, task_info
from proctor.model import Model, loggable_args, loggable_url
from proctor.registry import RegistryInfo, loggable
from proctor.schema import EvalLog, own_metadata, redact
from proctor.scorer import Scorer
from proctor.solver import SolverLike, plan_steps

__all__ = [
    "IDENTITY_VERSION",
    "compacted",
    "identity_changes",
    "ingredients",
    "logged_ingredients",
    "logged_options",
    "logged_unit",
    "scored_metadata",
    "scoring_identity",
    "unit_identity",
    "without_scored_copies",
]

IDENTITY_VERSION = 1
"""Changes with the ingredients: units of two versions can't be compared."""

# What may change between two runs of the same work: how it is run, not what is asked.
_NOT_IDENTITY = (
    "max_retries",
    "timeout",
    "attempt_timeout",
    "stream_idle_timeout",
    "max_connections",
    "adaptive_connections",
    "batch",
)
_SCORED_FROM = "scored_from"  # in the metadata of a scored copy: the name of the log that it is of
_LONGEST = 200  # characters of a text that a log keeps as they are
_SHOWN = 60  # characters of a value in a message


def ingredients(
    task: Task,
    solver: SolverLike,
    scorers: Sequence[Scorer],
    samples: Selection,
    model: Model,
    roles: Mapping[str, Model],
) -> dict[str, Any]:
    """What names the work, as JSON data.

    Limit, selection, order, epochs and gates are not in it: they say which samples are wanted, and when. Neither are
    secrets, so that a new key goes on with the work of the old one, and nobody finds a key by trying.
    """
    info = task_info(task)
    described = {
        "v": IDENTITY_VERSION,
        "task": _origin(info),
        "args": loggable(dict(info.params)),
        "version": task.version,
        "solver": [step.model_dump(exclude_none=True) for step in plan_steps(solver)],
        "scorers": [loggable(scorer) for scorer in scorers],
        "model": _described(model),
        "roles": {role: _described(each) for role, each in sorted(roles.items())},
        "dataset": _fingerprint(samples),
    }
    made: dict[str, Any] = json.loads(_canonical(described))
    return made


def unit_identity(found: Mapping[str, Any]) -> str:
    """128 bits, in hex, that name the work: equal for two runs whose samples can stand in one result."""
    return hashlib.blake2b(_canonical(found).encode(), digest_size=16).hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)


def compacted(value: Any) -> Any:
    """Ingredients as a log has them: of a long text, the beginning and a hash. A log has the whole elsewhere."""
    if isinstance(value, str) and len(value) > _LONGEST:
        digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return f"{value[:_SHOWN]}... [{len(value)} characters, {digest}]"
    if isinstance(value, dict):
        return {name: compacted(item) for name, item in value.items()}
    if isinstance(value, list):
        return [compacted(item) for item in value]
    return value


def logged_unit(header: EvalLog) -> str | None:
    """The unit's identity in a log; ``None`` when its writer named none."""
    unit = _own(header).get("unit")
    return unit if isinstance(unit, str) else None


def logged_ingredients(header: EvalLog) -> dict[str, Any] | None:
    """The ingredients of the identity in a log, long texts as ``compacted``; ``None`` when they are not there."""
    found = _own(header).get("identity")
    return found if isinstance(found, dict) else None


def logged_options(header: EvalLog) -> Mapping[str, Any]:
    """The options of a log's run that ``eval.config`` does not have, or not in full."""
    found = _own(header).get("options")
    return found if isinstance(found, dict) else {}


def without_scored_copies(headers: Sequence[EvalLog]) -> list[EvalLog]:
    """Logs less those that ``proctor score`` wrote beside one of them: that one is the attempt, they are about it."""
    runs = {header.eval.eval_id for header in headers if _SCORED_FROM not in _own(header)}
    return [header for header in headers if _SCORED_FROM not in _own(header) or header.eval.eval_id not in runs]


def scored_metadata(
    header: EvalLog, scorers: Sequence[Scorer], roles: Mapping[str, Model], source: str | None
) -> dict[str, Any] | None:
    """The metadata of a log whose scores are those of ``scorers`` alone: its work is scored so from now on.

    Args:
        header: the log as it was.
        scorers: all that gave its scores; none when those that it had are there still.
        roles: models that were given to roles in place of the log's.
        source: the log of which this is a copy.
    """
    own = dict(_own(header))
    known = logged_ingredients(header)
    if known is not None and scorers:
        found = {
            **known,
            "scorers": [loggable(scorer) for scorer in scorers],
            "roles": {**(known.get("roles") or {}), **{role: _described(each) for role, each in roles.items()}},
        }
        found = json.loads(_canonical(found))
        if compacted(found) != known:
            own |= {"unit": unit_identity(found), "identity": compacted(found)}
    if source is not None:
        own.setdefault(_SCORED_FROM, source)
    return {**(header.eval.metadata or {}), "proctor": own} if own else header.eval.metadata


def scoring_identity(
    header: EvalLog, scorers: Mapping[str, Scorer], model: Model | None, roles: Mapping[str, Model]
) -> str:
    """32 bits, in hex, that name a scoring of a log: equal for two whose grades can stand in one result.

    Args:
        header: the log.
        scorers: by the names that their scores will have.
        model: what ``get_model()`` gives them.
        roles: models in roles.
    """
    found = {
        "v": IDENTITY_VERSION,
        "eval": header.eval.eval_id,
        "scorers": {name: loggable(scorer) for name, scorer in scorers.items()},
        "model": None if model is None else _described(model),
        "roles": {role: _described(each) for role, each in roles.items()},
    }
    return unit_identity(found)[:8]


def _own(header: EvalLog) -> Mapping[str, Any]:
    return own_metadata(header.eval)


def identity_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two sets of ingredients, a line each: ``model.config.temperature: 0 -> 0.7``.

    Args:
        before: those of a log.
        now: those of a unit.
    """
    lines = list(_changes("", compacted(dict(before)), compacted(dict(now))))
    if (where := _called_elsewhere(str(before.get("task", "")), str(now.get("task", "")))) is not None:
        lines = [f"{line}\n    {where}" if line.startswith("task: ") else line for line in lines]
    return lines


def _called_elsewhere(before: str, now: str) -> str | None:
    """What to do when the same file has another name only since the working folder is another; ``None`` otherwise."""
    (path, at, name), (found, _, called) = before.partition("@"), now.partition("@")
    if not at or path == found or name != called or Path(path).name != Path(found).name:
        return None
    file = Path.cwd() / found
    if not file.is_file() or _root(file.parent) != Path.cwd():
        return None  # in a repository its name is the same wherever one is
    full = os.path.normpath(file)
    folder = full.removesuffix(f"{os.sep}{os.path.normpath(path)}")
    start = f"the folder that it was run from{f' ({folder})' if folder != full else ''}"
    return f"(outside of a git repository a task is known by its path from the working folder: call this from {start})"


def _changes(path: str, before: Any, now: Any) -> Iterator[str]:
    if before == now:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted({*before, *now}):
            inner = f"{path}.{name}" if path else name
            if inner == "dataset.ids" and before.get("size") != now.get("size"):
                continue  # it goes without saying
            if name == "params_passed" and before.get("params") != now.get("params"):
                continue  # the same again
            yield from _changes(inner, before.get(name, _MISSING), now.get(name, _MISSING))
    elif isinstance(before, list) and isinstance(now, list):
        for place, (one, other) in enumerate(zip_longest(before, now, fillvalue=_MISSING), 1):
            yield from _changes(f"{path}[{place}]", one, other)
    elif path == "dataset.ids":
        yield "dataset.ids: its samples have other ids"
    else:
        yield f"{path}: {_text(before)} -> {_text(now)}"


_MISSING: Any = object()


def _text(value: Any) -> str:
    if value is _MISSING:
        return "(none)"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN]}..."


def _origin(info: RegistryInfo) -> str:
    """``package/name`` for a task of a package, else ``path/of/file.py@name``, the same wherever a copy of it lies."""
    package = info.module.partition(".")[0]
    if hasattr(sys.modules.get(package), "__path__"):
        return f"{package}/{info.name}"
    if not info.file:
        return info.name
    file = Path(info.file)
    return f"{Path(os.path.relpath(file, _root(file.parent))).as_posix()}@{info.name}"


def _root(folder: Path) -> Path:
    """The top of the repository that ``folder`` is in; outside of any, the working directory."""
    return next((top for top in (folder, *folder.parents) if (top / ".git").exists()), Path.cwd())


def _described(model: Model) -> dict[str, Any]:
    config = model.config.model_dump(exclude_none=True, exclude=set(_NOT_IDENTITY))
    return {
        "name": model.name,
        "base_url": loggable_url(model.api.base_url),
        "args": loggable_args(model.args),
        "config": redact(config),
    }


def _fingerprint(samples: Selection) -> dict[str, Any]:
    """What tells one dataset from another without reading its samples: name, size and all ids, in whatever order."""
    dataset = samples.dataset
    total = 0
    if not isinstance(dataset, IterableDataset):
        # A sum, since sorting a million ids would hold all of them in memory at once.
        digest, number = hashlib.blake2b, int.from_bytes
        for id in dataset.ids():
            total += number(digest(str(id).encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big")
    return {"name": dataset.name, "size": samples.total, "ids": f"{total % (1 << 128):032x}"}
