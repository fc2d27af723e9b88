"""From a request's method and path to what it asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from proctor_testkit.kube._types import KINDS, Kind

__all__ = ["Route", "route"]

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>v1)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[a-z]+))?)?/?"
)
_NAMESPACE = re.compile(r"/api/v1/namespaces(?:/(?P<name>[^/]+)(?:/(?P<sub>status|finalize))?)?/?")
_NAMED = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_MANY = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_DEEDS = {"exec": "exec", "log": "log", "eviction": "evict"}


@dataclass(frozen=True, slots=True)
class Route:
    """What is asked for; ``kind`` is None for discovery, and where there is nothing."""

    verb: str
    kind: Kind | None
    namespace: str = ""
    name: str = ""
    sub: str = ""

    @property
    def words(self) -> str:
        """As ``KubeRequest.kind`` has it."""
        if self.kind is None:
            return f"{self.verb} discovery"
        deed = _DEEDS.get(self.sub)
        return f"{deed or self.verb} {self.kind.plural}{f'/{self.sub}' if self.sub and not deed else ''}"


def route(method: str, path: str, query: Mapping[str, list[str]]) -> Route:
    """What a request asks for."""
    found = _NAMESPACE.fullmatch(path)
    if found is not None:
        kind: Kind | None = KINDS["", "namespaces"]
        namespace, name, sub = "", found["name"] or "", found["sub"] or ""
    elif (found := _PATH.fullmatch(path)) is not None:
        kind = KINDS.get((found["group"] or "", found["plural"]))
        namespace, name, sub = found["namespace"] or "", found["name"] or "", found["sub"] or ""
    else:
        kind = None
    if found is None or kind is None:
        return Route("get" if method == "GET" else method.lower(), None)
    verb = (_NAMED if name else _MANY).get(method, method.lower())
    if verb in ("list", "get") and not sub and query.get("watch", ["0"])[0] in ("true", "1"):
        verb = "watch"
    return Route(verb, kind, namespace, name, sub)
