"""The difference of two JSON values, as state and store events keep it."""

from __future__ import annotations

from typing import Any

from proctor.log._fold import RUN, Runs, unfold
from proctor.log._json import decode

__all__ = ["json_changes"]


def json_changes(before: Any, after: Any, path: str = "") -> list[dict[str, Any]]:
    """Operations that turn ``before`` into ``after``: JSON Patch (RFC 6902) plus the value that was ``replaced``.

    Both are JSON data (dicts, lists and scalars), or such data folded (see ``_fold``), of which only what differs is
    unfolded. Lists are compared place by place: an appended item is one ``add``.
    """
    if before is after:
        return []
    if type(before) is Runs and type(after) is Runs and before.kind is after.kind:
        return _run_changes(before, after, path)
    if type(before) is bytes and type(after) is bytes and before == after:
        return []
    before, after = _opened(before), _opened(after)
    if isinstance(before, dict) and isinstance(after, dict):
        return _dict_changes(before, after, path)
    if isinstance(before, list) and isinstance(after, list):
        return _list_changes(before, after, path)
    if type(before) is type(after) and (before == after or (before != before and after != after)):
        return []
    return [{"op": "replace", "path": path, "value": unfold(after), "replaced": unfold(before)}]


def _opened(value: Any) -> Any:
    if type(value) is bytes:
        return decode(value)
    return unfold(value) if type(value) is Runs else value


def _dict_changes(before: dict[str, Any], after: dict[str, Any], path: str) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = []
    for key, value in before.items():
        place = f"{path}/{_escape(key)}"
        if key not in after:
            changes.append({"op": "remove", "path": place, "replaced": unfold(value)})
        else:
            changes += json_changes(value, after[key], place)
    changes += [
        {"op": "add", "path": f"{path}/{_escape(key)}", "value": unfold(value)}
        for key, value in after.items()
        if key not in before
    ]
    return changes


def _list_changes(before: list[Any], after: list[Any], path: str, first: int = 0) -> list[dict[str, Any]]:
    """The changes of a list from its ``first`` place on."""
    changes: list[dict[str, Any]] = []
    shared = min(len(before), len(after))
    for index in range(shared):
        changes += json_changes(before[index], after[index], f"{path}/{first + index}")
    for index in range(len(before) - 1, shared - 1, -1):  # from the end, so that earlier places stay valid
        changes.append({"op": "remove", "path": f"{path}/{first + index}", "replaced": unfold(before[index])})
    changes += [
        {"op": "add", "path": f"{path}/{first + index}", "value": unfold(after[index])}
        for index in range(shared, len(after))
    ]
    return changes


def _run_changes(before: Runs, after: Runs, path: str) -> list[dict[str, Any]]:
    olds, news = before.parts, after.parts
    if before.kind is dict:  # a key may have moved from one run to another; it is in none that is the same
        differ = [index for index, (old, new) in enumerate(zip(olds, news, strict=False)) if not _same(old, new)]
        rest = min(len(olds), len(news))
        removed = Runs(dict, [olds[index] for index in differ] + olds[rest:])
        added = Runs(dict, [news[index] for index in differ] + news[rest:])
        return _dict_changes(unfold(removed), unfold(added), path)
    changes: list[dict[str, Any]] = []
    last = min(len(olds), len(news)) - 1  # the one run that may have fewer items than the other's
    for index in range(last):
        if not _same(olds[index], news[index]):
            changes += _list_changes(_opened(olds[index]), _opened(news[index]), path, index * RUN)
    if len(olds) == len(news) and _same(olds[last], news[last]):
        return changes
    old, new = unfold(Runs(list, olds[last:])), unfold(Runs(list, news[last:]))
    return changes + _list_changes(old, new, path, last * RUN)


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is bytes and type(other) is bytes and one == other)


def _escape(key: str) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
