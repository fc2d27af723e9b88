"""Data as it is at a moment, in a form that is cheap to take again and to compare when little of it has changed.

Values may change in place, so all of them must be looked at each time. Folded data is JSON data in which numbers and
texts are themselves (a text is not looked at when it is the same object as before), containers of other containers
are ``bytes``, their JSON, unless that is long, and those with many items are ``Runs`` of these. Whatever has not
changed since the last time is the same object as then, so that comparing costs nothing, and only what has changed is
ever decoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from operator import is_
from typing import Any

from proctor.log._json import decode, encode

__all__ = ["Runs", "fold", "unfold"]

RUN = 64
"""Items that a container may have before it is taken in runs of as many."""
_LONG = 1 << 16  # bytes of JSON above which a container's items are folded one by one
_LOOK = 500  # values that are looked at to guess that
_DEEPEST = 8  # levels of containers that are taken apart: data may hold itself
_SCALARS = frozenset((str, int, float, bool, type(None)))
_TEXT = frozenset((str,))


class Runs:
    """A list or dictionary with many items; ``parts`` are its items ``RUN`` by ``RUN``, each folded."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: type[Any], parts: list[Any]) -> None:
        self.kind = kind
        self.parts = parts


def fold(value: Any, former: Any = None, depth: int = 0) -> Any:
    """``value`` folded; ``former`` itself, or parts of it, where it is what was folded then."""
    kind = type(value)
    if kind in _SCALARS:
        same = type(former) is kind and (former == value or (former != former and value != value))
        return former if same else value
    apart = (kind is list or (kind is dict and _TEXT.issuperset(map(type, value)))) and depth < _DEEPEST
    if apart and len(value) > RUN:
        return _fold_runs(kind, value, former, depth)
    if apart and _SCALARS.issuperset(map(type, value if kind is list else value.values())):
        return former if type(former) is kind and _equal(former, value) else value.copy()
    if apart and (type(former) is kind or (type(former) is not bytes and _long(value))):
        return _fold_items(value, former, depth)
    raw = encode(value)
    if apart and len(raw) > _LONG:
        return _fold_items(value, former, depth)
    return former if type(former) is bytes and former == raw else raw


def _fold_runs(kind: type[Any], value: Any, former: Any, depth: int) -> Any:
    before: list[Any] = former.parts if isinstance(former, Runs) and former.kind is kind else []
    if kind is list:
        runs: Iterable[Any] = (value[start : start + RUN] for start in range(0, len(value), RUN))
    else:
        items = iter(value.items())
        runs = (dict(islice(items, RUN)) for _ in range(0, len(value), RUN))
    known = len(before)
    parts = [fold(run, before[index] if index < known else b"", depth + 1) for index, run in enumerate(runs)]
    same = len(parts) == known and all(part is old for part, old in zip(parts, before, strict=True))
    return former if same else Runs(kind, parts)


def _fold_items(value: Any, former: Any, depth: int) -> Any:
    if type(value) is list:
        before = former if type(former) is list else []
        known = len(before)
        parts = [fold(item, before[index] if index < known else None, depth + 1) for index, item in enumerate(value)]
        same = type(former) is list and len(parts) == known and all(map(is_, parts, before))
        return former if same else parts
    old = former if type(former) is dict else {}
    found = {key: fold(item, old.get(key), depth + 1) for key, item in value.items()}
    same = type(former) is dict and len(found) == len(old)
    return former if same and all(key in old and part is old[key] for key, part in found.items()) else found


def _equal(former: Any, value: Any) -> bool:
    """Whether two lists or dictionaries of scalars have the same items."""
    if len(former) != len(value):
        return False
    if type(value) is list:
        olds, news = former, value
    elif list(former) == list(value):
        olds, news = former.values(), value.values()
    else:
        return False
    # 1 and True are equal, and not the same; almost always all are the same objects.
    return all(map(is_, olds, news)) or (list(map(type, olds)) == list(map(type, news)) and former == value)


def _long(value: Any) -> bool:
    """Whether the JSON of ``value`` is likely to be long, for next to nothing."""
    left, size, todo = _LOOK, 0, [value]
    while todo:
        item = todo.pop()
        left -= 1
        if type(item) is str:
            size += len(item)
        elif type(item) is list:
            todo += item[: left + 1]
        elif type(item) is dict:
            todo += islice(item.values(), left + 1)
        if size > _LONG or left < 0:
            return True
    return False


def unfold(folded: Any) -> Any:
    """The JSON data that was folded."""
    kind = type(folded)
    if kind is bytes:
        return decode(folded)
    if kind is list:
        return [unfold(item) for item in folded]
    if kind is dict:
        return {key: unfold(item) for key, item in folded.items()}
    if kind is not Runs:
        return folded
    if folded.kind is list:
        return [item for part in folded.parts for item in unfold(part)]
    return {key: item for part in folded.parts for key, item in unfold(part).items()}
