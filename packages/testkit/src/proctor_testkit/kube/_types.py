"""The types that the fake Kubernetes serves, and how it tells clients of them: discovery and OpenAPI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["KINDS", "VERSION", "Kind", "discovery"]

VERSION = {
    "major": "1",
    "minor": "32",
    "gitVersion": "v1.32.4",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "2025-04-22T15:56:05Z",
    "goVersion": "go1.23.6",
    "compiler": "gc",
    "platform": "linux/amd64",
}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of object: where it stands in the API, and its names."""

    group: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    stored: bool = True
    version: str = "v1"

    @property
    def api_version(self) -> str:
        """As it stands in objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of its group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def qualified(self) -> str:
        """The name that messages use."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_ALL = (
    Kind("", "namespaces", "Namespace", namespaced=False, short=("ns",)),
    Kind("", "nodes", "Node", namespaced=False, short=("no",)),
    Kind("", "pods", "Pod", short=("po",)),
    Kind("", "services", "Service", short=("svc",)),
    Kind("", "configmaps", "ConfigMap", short=("cm",)),
    Kind("", "secrets", "Secret"),
    Kind("", "serviceaccounts", "ServiceAccount", short=("sa",)),
    Kind("", "resourcequotas", "ResourceQuota", short=("quota",)),
    Kind("", "limitranges", "LimitRange", short=("limits",)),
    Kind("", "persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",)),
    Kind("", "events", "Event", short=("ev",)),
    Kind("coordination.k8s.io", "leases", "Lease"),
    Kind("networking.k8s.io", "networkpolicies", "NetworkPolicy", short=("netpol",)),
    Kind("node.k8s.io", "runtimeclasses", "RuntimeClass", namespaced=False),
    Kind("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False, stored=False),
)
KINDS = {(kind.group, kind.plural): kind for kind in _ALL}
_SUBRESOURCES = {"pods": ("exec", "log", "eviction", "status"), "namespaces": ("status",)}


def discovery(path: str) -> dict[str, Any] | None:
    """The document at ``path`` that says what is served; None where there is none."""
    groups = sorted({kind.group for kind in _ALL if kind.group})
    if path == "/version":
        return dict(VERSION)
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in groups]}
    if path == "/openapi/v3":
        roots = {kind.root for kind in _ALL}
        return {"paths": {root[1:]: {"serverRelativeURL": f"/openapi/v3{root}?hash=1"} for root in sorted(roots)}}
    if path.startswith("/openapi/v3/"):
        found = [kind for kind in _ALL if kind.root == path.removeprefix("/openapi/v3")]
        return _openapi(found) if found else None
    found = [kind for kind in _ALL if kind.root == path]
    if not found:
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(path[6:])} if path[6:] in groups else None
    listed = [entry for kind in found for entry in _resources(kind)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].api_version,
        "resources": listed,
    }


def _group(name: str) -> dict[str, Any]:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resources(kind: Kind) -> list[dict[str, Any]]:
    first = {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _VERBS if kind.stored else ["create"],
        **({"shortNames": list(kind.short)} if kind.short else {}),
        **({"categories": ["all"]} if kind.plural in ("pods", "services") else {}),
    }
    verbs = {"exec": ["create", "get"], "log": ["get"], "eviction": ["create"], "status": ["get", "patch", "update"]}
    more = [
        {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": "PodExecOptions" if name == "exec" else kind.kind,
            "verbs": verbs[name],
        }
        for name in _SUBRESOURCES.get(kind.plural, ())
        if not kind.group
    ]
    return [first, *more]


def _openapi(kinds: list[Kind]) -> dict[str, Any]:
    """As much of a schema as kubectl reads before it sends an object: which parameters and patches are understood."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    patches = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("dryRun", "fieldValidation")]
    for kind in kinds:
        named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        schemas[f"io.k8s.api.{kind.kind}"] = {"type": "object", "x-kubernetes-group-version-kind": [named]}
        base = f"{kind.root}/namespaces/{{namespace}}" if kind.namespaced else kind.root
        common = {"parameters": parameters, "x-kubernetes-group-version-kind": named}
        bodies = {f"application/{name}": {"schema": {"type": "object"}} for name in patches}
        patch = {"patch": {**common, "x-kubernetes-action": "patch", "requestBody": {"content": bodies}}}
        paths[f"{base}/{kind.plural}"] = {"post": {**common, "x-kubernetes-action": "post"}}
        paths[f"{base}/{kind.plural}/{{name}}"] = patch
    info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}
