"""What the fake Kubernetes keeps: objects by version, what changed, and who watches."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from proctor_testkit.kube._errors import ApiError, bad_request, expired
from proctor_testkit.kube._types import Kind

__all__ = ["Change", "Obj", "Selector", "Store", "Watcher", "key_of", "selector"]

Obj: TypeAlias = dict[str, Any]
Selector: TypeAlias = Callable[[Obj], bool]

_KEPT = 20_000  # changes, after which the oldest are forgotten
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_TERM = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<gone>[^\s,=!]+)"
    r"|(?P<key>[^\s,=!()]+)(?:\s*(?P<op>==|=|!=)\s*(?P<value>[^,]*)|\s+(?P<set>in|notin)\s*\((?P<values>[^)]*)\))?)"
    r"\s*(?:,|$)"
)


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to an object: how it was (None: it was not there) and how it is (None: it is gone)."""

    version: int
    kind: Kind
    before: Obj | None
    after: Obj | None
    last: Obj

    def event(self, wanted: Selector) -> tuple[str, Obj] | None:
        """As a watcher hears of it that looks at what is ``wanted``."""
        was = self.before is not None and wanted(self.before)
        now = self.after is not None and wanted(self.after)
        if not was and not now:
            return None
        return ("MODIFIED" if was and now else "ADDED" if now else "DELETED"), self.last


def key_of(obj: Obj) -> tuple[str, str]:
    """Its namespace ("" for an object of the cluster) and its name."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Watcher:
    """One watch: what it has not heard of yet."""

    def __init__(self, kind: Kind, wanted: Selector) -> None:
        self.kind = kind
        self.wanted = wanted
        self.queue: asyncio.Queue[tuple[str, Obj]] = asyncio.Queue()

    def offer(self, change: Change) -> None:
        """Queue the change, if it is one of those that are watched."""
        if change.kind == self.kind and (event := change.event(self.wanted)) is not None:
            self.queue.put_nowait(event)


class Store:
    """Objects by type, namespace and name. An object in it is never changed in place: a new one takes its place."""

    def __init__(self) -> None:
        self.version = 1000
        self._oldest = self.version
        self._objects: dict[Kind, dict[tuple[str, str], Obj]] = {}
        self._changes: deque[Change] = deque()
        self._watchers: set[Watcher] = set()
        self._owned: dict[str, set[tuple[Kind, tuple[str, str]]]] = {}
        self.removed: Callable[[Obj], object] = lambda obj: None
        """Called with each object that is forgotten."""

    def get(self, kind: Kind, namespace: str, name: str) -> Obj | None:
        """The object, or None."""
        return self._objects.get(kind, {}).get((namespace, name))

    def all(self, kind: Kind, namespace: str = "") -> list[Obj]:
        """All objects of a type, sorted; those of one namespace unless it is ""."""
        found = self._objects.get(kind, {})
        return [found[key] for key in sorted(found) if not namespace or key[0] == namespace]

    def kinds(self) -> list[Kind]:
        """The types of which there are objects."""
        return list(self._objects)

    def put(self, kind: Kind, obj: Obj) -> Obj:
        """Keep ``obj`` as a new version; what is kept."""
        version = self._next()
        kept = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
        before = self.get(kind, *key_of(obj))
        for owner in kept["metadata"].get("ownerReferences") or ():
            self._owned.setdefault(owner.get("uid", ""), set()).add((kind, key_of(kept)))
        self._objects.setdefault(kind, {})[key_of(obj)] = kept
        self._publish(Change(version, kind, before, kept, kept))
        return kept

    def remove(self, kind: Kind, obj: Obj) -> None:
        """Forget an object."""
        before = self._objects[kind].pop(key_of(obj))
        version = self._next()
        last = {**before, "metadata": {**before["metadata"], "resourceVersion": str(version)}}
        self._publish(Change(version, kind, before, None, last))
        self.removed(last)

    def owned(self, uid: str) -> list[tuple[Kind, Obj]]:
        """The objects that have one owner: this."""
        found = [(kind, self.get(kind, *key)) for kind, key in sorted(self._owned.pop(uid, ()), key=str)]
        return [
            (kind, obj)
            for kind, obj in found
            if obj is not None and [one.get("uid") for one in obj["metadata"].get("ownerReferences") or ()] == [uid]
        ]

    def compact(self) -> None:
        """Forget what changed so far: a watch or a list that goes on from an older version is expired."""
        self._next()
        self._oldest = self.version
        self._changes.clear()
        for watcher in self._watchers:
            watcher.queue.put_nowait(("ERROR", expired().status))

    def page(self, kind: Kind, namespace: str, wanted: Selector, limit: int, token: str) -> tuple[list[Obj], Obj]:
        """Some of the objects, and the metadata of the list.

        Raises:
            ApiError: if ``token`` is none of this store's, or too old.
        """
        start, version = ("", ""), self.version
        if token:
            try:
                version, *rest = json.loads(base64.urlsafe_b64decode(token))
                start = (rest[0], rest[1])
            except (ValueError, IndexError):
                raise bad_request("continue key is not valid") from None
            if version < self._oldest:
                raise expired("The provided continue parameter is too old to display a consistent list result.")
        found = [obj for obj in self.all(kind, namespace) if wanted(obj) and (not token or key_of(obj) > start)]
        about: Obj = {"resourceVersion": str(version)}
        if limit and len(found) > limit:
            left, found = len(found) - limit, found[:limit]
            said = json.dumps([version, *key_of(found[-1])]).encode()
            about |= {"continue": base64.urlsafe_b64encode(said).decode(), "remainingItemCount": left}
        return found, about

    def watch(self, kind: Kind, wanted: Selector, since: str) -> Watcher:
        """Begin to watch after the version ``since``; from what is there now if it is "" or "0".

        Raises:
            ApiError: if what changed since then is no longer known.
        """
        watcher = Watcher(kind, wanted)
        if since in ("", "0"):
            for obj in self.all(kind):
                if wanted(obj):
                    watcher.queue.put_nowait(("ADDED", obj))
        else:
            if not since.isdigit():
                raise bad_request(f'resourceVersion: Invalid value: "{since}"')
            if int(since) < self._oldest:
                raise expired(f"too old resource version: {since} ({self._oldest})")
            for change in self._changes:
                if change.version > int(since):
                    watcher.offer(change)
        self._watchers.add(watcher)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """End a watch."""
        self._watchers.discard(watcher)

    def _next(self) -> int:
        self.version += 1
        return self.version

    def _publish(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > _KEPT:
            self._oldest = self._changes.popleft().version
        for watcher in self._watchers:
            watcher.offer(change)


def selector(labels: str, fields: str, namespace: str = "") -> Selector:
    """What a label selector, a field selector and a namespace let through.

    Raises:
        ApiError: if a selector cannot be read.
    """
    by_label = list(_terms(labels))
    by_field = list(_terms(fields))
    for value in (one for _, _, values in by_label for one in values):
        if not _VALUE.fullmatch(value):
            raise bad_request(f'unable to parse requirement: values[0]: Invalid value: "{value}": a valid label')
    if any(operator not in ("=", "!=") for _, operator, _ in by_field):
        raise bad_request(f'invalid field selector: "{fields}"')

    def wanted(obj: Obj) -> bool:
        if namespace and obj["metadata"].get("namespace") != namespace:
            return False
        given = obj["metadata"].get("labels") or {}
        return all(_holds(given.get(key), operator, values) for key, operator, values in by_label) and all(
            _holds(_field(obj, path), operator, values) for path, operator, values in by_field
        )

    return wanted


def _terms(text: str) -> Iterator[tuple[str, str, list[str]]]:
    at = 0
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None or found.end() == at:
            raise ApiError(400, f'unable to parse requirement: found "{text[at:]}"')
        at = found.end()
        if found["absent"]:
            yield found["gone"], "!", []
        elif found["set"]:
            yield found["key"], found["set"], [value.strip() for value in found["values"].split(",")]
        elif found["op"]:
            yield found["key"], "!=" if found["op"] == "!=" else "=", [found["value"].strip()]
        else:
            yield found["key"], "exists", []


def _holds(given: str | None, operator: str, values: list[str]) -> bool:
    if operator in ("=", "in"):
        return given in values
    if operator in ("!=", "notin"):
        return given not in values
    return (given is None) == (operator == "!")


def _field(obj: Obj, path: str) -> str:
    found: Any = obj
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return "" if found is None else str(found)
