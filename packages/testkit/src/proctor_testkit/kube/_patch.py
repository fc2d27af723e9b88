"""Patches: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge, and apply on the server's side."""

from __future__ import annotations

import copy
from typing import Any

from proctor_testkit.kube._errors import ApiError, bad_request
from proctor_testkit.kube._store import Obj

__all__ = ["applied", "json_patch", "merge_patch", "strategic_merge"]

# Lists whose items have a key: by that, and not by their place, a strategic patch finds them.
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "ports": "containerPort",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "conditions": "type",
    "ownerReferences": "uid",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "secrets": "name",
}
_SETS = frozenset({"finalizers"})


def merge_patch(target: Any, patch: Any) -> Any:
    """``target`` with a merge patch: null takes away, lists are replaced."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    made = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merge_patch(made.get(key), value)
    return made


def strategic_merge(target: Any, patch: Any) -> Any:
    """``target`` with a strategic merge patch: lists with a key are merged by it."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    made = dict(target) if isinstance(target, dict) else {}
    kept = patch.get("$retainKeys")
    if kept is not None:
        made = {key: value for key, value in made.items() if key in kept}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            made[name] = [one for one in made.get(name) or [] if one not in value]
        elif key.startswith("$"):
            continue  # the order of a list, which is kept as it is
        elif value is None:
            made.pop(key, None)
        elif isinstance(value, list) and key in _SETS:
            made[key] = [*(made.get(key) or []), *(one for one in value if one not in (made.get(key) or []))]
        elif isinstance(value, list) and key in _KEYS:
            made[key] = _merged(made.get(key) or [], value, _KEYS[key])
        else:
            made[key] = strategic_merge(made.get(key), value)
    return made


def _merged(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    if any(one.get("$patch") == "replace" for one in patch):
        return [one for one in patch if "$patch" not in one]
    made = list(target)
    for one in patch:
        at = next((index for index, old in enumerate(made) if old.get(key) == one.get(key)), None)
        if one.get("$patch") == "delete":
            if at is not None:
                del made[at]
        elif at is None:
            made.append(copy.deepcopy(one))
        else:
            made[at] = strategic_merge(made[at], one)
    return made


def applied(target: Obj, before: Obj, wanted: Obj) -> Obj:
    """``target`` with what one manager wants, without what it wanted ``before`` and wants no more."""
    made = strategic_merge(target, wanted)
    return _without(made, before, wanted)  # type: ignore[no-any-return]  # of a dict it makes a dict


def _without(made: Any, before: Any, wanted: Any) -> Any:
    if not (isinstance(made, dict) and isinstance(before, dict) and isinstance(wanted, dict)):
        return made
    left = {}
    for key, value in made.items():
        if key in before and key not in wanted:
            continue
        left[key] = _without(value, before[key], wanted[key]) if key in before else value
    return left


def json_patch(target: Obj, patch: Any) -> Obj:
    """``target`` with a JSON patch.

    Raises:
        ApiError: if an operation cannot be done.
    """
    made: Any = {"": copy.deepcopy(target)}
    if not isinstance(patch, list):
        raise bad_request("a JSON patch is a list of operations")
    for step in patch:
        try:
            _operate(made, step)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise ApiError(422, f"the server rejected our request due to an error in our request: {error!r}") from None
    result: Obj = made[""]
    return result


def _operate(made: Any, step: Obj) -> None:
    where, key = _place(made, step["path"])
    operation = step["op"]
    if operation == "test":
        if where[key] != step["value"]:
            raise ValueError(f"test failed at {step['path']}")
        return
    if operation in ("move", "copy"):
        source, name = _place(made, step["from"])
        value = copy.deepcopy(source[name])
        if operation == "move":
            del source[name]
        where, key = _place(made, step["path"])
    else:
        value = step.get("value")
    if operation == "remove":
        del where[key]
    elif isinstance(where, list) and operation != "replace":
        where.insert(len(where) if key == "-" else key, value)
    else:
        if operation == "replace":
            where[key]  # what is replaced is there
        where[key] = value


def _place(made: Any, path: str) -> tuple[Any, Any]:
    names = [name.replace("~1", "/").replace("~0", "~") for name in path.split("/")]
    where = made
    for name in names[:-1]:
        where = where[int(name)] if isinstance(where, list) else where[name]
    last = names[-1]
    return where, int(last) if isinstance(where, list) and last != "-" else last
