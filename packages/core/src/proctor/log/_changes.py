"""The difference of two JSON values, as state and store events keep it."""

from __future__ import annotations

from typing import Any

__all__ = ["json_changes"]


def json_changes(before: Any, after: Any, path: str = "") -> list[dict[str, Any]]:
    """Operations that turn ``before`` into ``after``: JSON Patch (RFC 6902) plus the value that was ``replaced``.

    Both are JSON data (dicts, lists and scalars). Lists are compared place by place: an appended item is one ``add``.
    """
    if before is after:
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        return _dict_changes(before, after, path)
    if isinstance(before, list) and isinstance(after, list):
        return _list_changes(before, after, path)
    if type(before) is type(after) and before == after:
        return []
    return [{"op": "replace", "path": path, "value": after, "replaced": before}]


def _dict_changes(before: dict[str, Any], after: dict[str, Any], path: str) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = []
    for key, value in before.items():
        place = f"{path}/{_escape(key)}"
        if key not in after:
            changes.append({"op": "remove", "path": place, "replaced": value})
        else:
            changes += json_changes(value, after[key], place)
    changes += [
        {"op": "add", "path": f"{path}/{_escape(key)}", "value": value}
        for key, value in after.items()
        if key not in before
    ]
    return changes


def _list_changes(before: list[Any], after: list[Any], path: str) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = []
    shared = min(len(before), len(after))
    for index in range(shared):
        changes += json_changes(before[index], after[index], f"{path}/{index}")
    for index in range(len(before) - 1, shared - 1, -1):  # from the end, so that earlier places stay valid
        changes.append({"op": "remove", "path": f"{path}/{index}", "replaced": before[index]})
    changes += [{"op": "add", "path": f"{path}/{index}", "value": after[index]} for index in range(shared, len(after))]
    return changes


def _escape(key: str) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
