"""From a pod's specification to what its backing makes: environment, mounted files, limits, network."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from proctor_testkit.kube._backing import Container, Launch
from proctor_testkit.kube._quantity import quantity
from proctor_testkit.kube._store import Obj, Store
from proctor_testkit.kube._types import KINDS

__all__ = ["ConfigError", "is_cut_off", "launch"]

_MAPS = {"configMap": KINDS["", "configmaps"], "secret": KINDS["", "secrets"]}
_POLICIES = KINDS["networking.k8s.io", "networkpolicies"]
_HARMLESS = frozenset({"downwardAPI", "projected"})


class ConfigError(Exception):
    """What a container refers to is not there: CreateContainerConfigError."""


def launch(store: Store, pod: Obj, container: Obj, address: str, joined: Container | None, *, network: bool) -> Launch:
    """How a container of a pod is made.

    Raises:
        ConfigError: if it refers to something that is not there, or that the fake does not serve.
    """
    spec, about = pod["spec"], pod["metadata"]
    limits = (container.get("resources") or {}).get("limits") or {}
    security = {**(spec.get("securityContext") or {}), **(container.get("securityContext") or {})}
    user = str(security.get("runAsUser", ""))
    if user and "runAsGroup" in security:
        user += f":{security['runAsGroup']}"
    hosts = {name: one["ip"] for one in spec.get("hostAliases") or [] for name in one.get("hostnames") or []}
    files, shared = _mounts(store, pod, container)
    return Launch(
        pod=about["uid"],
        name=container["name"],
        image=container["image"],
        command=container.get("command"),
        arguments=container.get("args"),
        environment={"KUBERNETES_SERVICE_HOST": "127.0.0.1", **_environment(store, pod, container, address)},
        directory=container.get("workingDir", ""),
        user=user,
        cpus=quantity(limits.get("cpu", 0)),
        memory=int(quantity(limits.get("memory", 0))),
        security=security,
        network=network,
        hostname=(spec.get("hostname") or about["name"])[:63],
        joined=joined,
        hosts={**_services(store, about["namespace"]), **hosts},
        files=files,
        shared=shared,
    )


def is_cut_off(store: Store, pod: Obj) -> bool:
    """Whether a network policy lets nothing out of the pod."""
    for policy in store.all(_POLICIES, pod["metadata"]["namespace"]):
        spec = policy.get("spec") or {}
        if "Egress" in (spec.get("policyTypes") or []) and not spec.get("egress") and _selects(spec, pod):
            return True
    return False


def _selects(policy: Obj, pod: Obj) -> bool:
    wanted = (policy.get("podSelector") or {}).get("matchLabels") or {}
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def _services(store: Store, namespace: str) -> dict[str, str]:
    """The names of the namespace's services, each with the address of a pod that it selects and that runs by now."""
    found: dict[str, str] = {}
    for service in store.all(KINDS["", "services"], namespace):
        wanted = (service.get("spec") or {}).get("selector") or {}
        for pod in store.all(KINDS["", "pods"], namespace) if wanted else ():
            labels, address = pod["metadata"].get("labels") or {}, pod["status"].get("podIP")
            if address and all(labels.get(key) == value for key, value in wanted.items()):
                name = service["metadata"]["name"]
                found |= {name: address, f"{name}.{namespace}": address, f"{name}.{namespace}.svc": address}
                found[f"{name}.{namespace}.svc.cluster.local"] = address
    return found


def _environment(store: Store, pod: Obj, container: Obj, address: str) -> dict[str, str]:
    made: dict[str, str] = {}
    namespace = pod["metadata"]["namespace"]
    for source in container.get("envFrom") or []:
        for field, kind in (("configMapRef", "configMap"), ("secretRef", "secret")):
            if field in source:
                data = _data(store, kind, namespace, source[field])
                made |= {source.get("prefix", "") + key: value.decode() for key, value in data.items()}
    for variable in container.get("env") or []:
        value = variable.get("value")
        if value is None:
            value = _refers(store, pod, variable.get("valueFrom") or {}, address)
        if value is not None:
            made[variable["name"]] = _expanded(value, made)
    return made


def _expanded(value: str, known: dict[str, str]) -> str:
    """With ``$(NAME)`` of variables that came before; ``$$`` is a dollar sign before a parenthesis."""
    parts = value.split("$$(")
    for name, found in known.items():
        parts = [part.replace(f"$({name})", found) for part in parts]
    return "$(".join(parts)


def _refers(store: Store, pod: Obj, source: Obj, address: str) -> str | None:
    about = pod["metadata"]
    if "fieldRef" in source:
        path = source["fieldRef"]["fieldPath"]
        known: dict[str, Any] = {
            "metadata.name": about["name"],
            "metadata.namespace": about["namespace"],
            "metadata.uid": about["uid"],
            "spec.nodeName": pod["spec"].get("nodeName", ""),
            "spec.serviceAccountName": pod["spec"]["serviceAccountName"],
            "status.podIP": address,
            "status.hostIP": "127.0.0.1",
        }
        for side in ("labels", "annotations"):
            known |= {f"metadata.{side}['{key}']": value for key, value in (about.get(side) or {}).items()}
        return str(known.get(path, ""))
    for field, kind in (("configMapKeyRef", "configMap"), ("secretKeyRef", "secret")):
        if field in source:
            data = _data(store, kind, about["namespace"], source[field])
            if (value := data.get(source[field]["key"])) is not None:
                return value.decode()
            if not source[field].get("optional"):
                raise ConfigError(f"couldn't find key {source[field]['key']} in {kind} {source[field]['name']}")
    return None


def _data(store: Store, kind: str, namespace: str, asked: Obj) -> dict[str, bytes]:
    name = asked.get("name") or asked.get("secretName") or ""
    found = store.get(_MAPS[kind], namespace, name)
    if found is None:
        if asked.get("optional"):
            return {}
        raise ConfigError(f'{kind.lower()} "{name}" not found')
    coded = {**(found.get("binaryData") or {}), **(found.get("data") or {} if kind == "secret" else {})}
    plain = {} if kind == "secret" else found.get("data") or {}
    decoded = {key: base64.b64decode(value) for key, value in coded.items()}
    return {**decoded, **{key: str(value).encode() for key, value in plain.items()}}


def _mounts(store: Store, pod: Obj, container: Obj) -> tuple[dict[str, bytes], dict[str, str]]:
    files: dict[str, bytes] = {}
    shared: dict[str, str] = {}
    volumes = {one["name"]: one for one in pod["spec"].get("volumes") or []}
    for mount in container.get("volumeMounts") or []:
        volume, path = volumes[mount["name"]], mount["mountPath"].rstrip("/")
        kind = next((name for name in _MAPS if name in volume), None)
        if kind is not None:
            data = dict(_found(store, pod, kind, volume[kind]))
            if "subPath" in mount:
                files[path] = data.get(mount["subPath"], b"")
            else:
                files |= {f"{path}/{name}": content for name, content in data.items()}
        elif "emptyDir" in volume or len(volume) == 1:
            shared[path] = mount["name"]
        elif not _HARMLESS & set(volume):
            kinds = ", ".join(sorted(set(volume) - {"name"}))
            raise ConfigError(f"the fake Kubernetes serves no volume of the kind {kinds}")
    return files, shared


def _found(store: Store, pod: Obj, kind: str, asked: Obj) -> Iterator[tuple[str, bytes]]:
    data = _data(store, kind, pod["metadata"]["namespace"], asked)
    items = asked.get("items")
    for key, content in data.items():
        if items is None:
            yield key, content
        yield from ((one["path"], content) for one in items or [] if one["key"] == key)
