"""A configuration's tree as the specification of a pod; what is not understood is an error that names the key."""

from __future__ import annotations

import difflib
import ipaddress
import re
import shlex
from collections.abc import Mapping
from typing import Any

from proctor_sandbox_k8s._source import Tree
from proctor_sandbox_k8s._spec import START_TIMEOUT, ContainerSpec, NetworkRules, Place, PodSpec

__all__ = ["read_spec"]

_CONTAINER = (
    "image",
    "command",
    "args",
    "env",
    "envFrom",
    "workingDir",
    "cpu",
    "memory",
    "resources",
    "securityContext",
    "volumeMounts",
    "ports",
    "readinessProbe",
    "imagePullPolicy",
)
_POD = (
    "context",
    "namespace",
    "network",
    "startTimeout",
    "nodeSelector",
    "tolerations",
    "affinity",
    "serviceAccount",
    "automountServiceAccountToken",
    "runtimeClassName",
    "priorityClassName",
    "imagePullSecrets",
    "volumes",
    "podSecurityContext",
    "activeDeadlineSeconds",
    "labels",
    "annotations",
    "services",
)
_NETWORK = ("cidrs", "domains", "ports", "dns")
_VOLUMES = ("emptyDir", "configMap", "secret", "projected")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.IGNORECASE)
_PORT = re.compile(r"(\d{1,5})(?:/(TCP|UDP|SCTP))?", re.IGNORECASE)


def read_spec(tree: Tree) -> PodSpec:
    """The pod that a configuration asks for.

    Raises:
        UsageError: if a key is unknown or missing, or a value is none that it may have.
    """
    reader = _Reader(tree)
    values = tree.values
    reader.check_keys(values, "", (*_CONTAINER, *_POD))
    services = reader.mapping(values, "services", "")
    names = ["default", *services]
    containers = [_container(reader, values, "", "default", idle=True)]
    for name, given in services.items():
        path = f"services.{name}"
        if not _LABEL.fullmatch(str(name)) or names.count(name) > 1:
            raise tree.error(path, "the name of a service has lower-case letters, digits and '-', and is no 'default'")
        if not isinstance(given, Mapping):
            raise tree.error(path, "a mapping was expected, with at least `image: ...`")
        reader.check_keys(given, path, _CONTAINER)
        containers.append(_container(reader, given, path, str(name), idle=False))
    deadline = reader.number(values, "activeDeadlineSeconds", "")
    return PodSpec(
        containers=tuple(containers),
        place=Place(reader.text(values, "context", ""), reader.text(values, "namespace", "")),
        network=_network(reader, values.get("network")),
        start_timeout=reader.number(values, "startTimeout", "", START_TIMEOUT) or 0.0,
        node_selector=reader.texts(values, "nodeSelector"),
        tolerations=reader.objects(values, "tolerations", ""),
        affinity=reader.mapping(values, "affinity", "") or None,
        service_account=reader.text(values, "serviceAccount", ""),
        service_account_token=reader.flag(values, "automountServiceAccountToken", ""),
        runtime_class=reader.text(values, "runtimeClassName", ""),
        priority_class=reader.text(values, "priorityClassName", ""),
        image_pull_secrets=_secrets(reader, values),
        volumes=_volumes(reader, values),
        security_context=reader.mapping(values, "podSecurityContext", "") or None,
        active_deadline=None if deadline is None else int(deadline),
        labels=reader.texts(values, "labels"),
        annotations=reader.texts(values, "annotations"),
    )


def _container(reader: _Reader, values: Mapping[str, Any], path: str, name: str, *, idle: bool) -> ContainerSpec:
    image = reader.text(values, "image", path)
    if not image:
        raise reader.tree.error(_join(path, "image"), "every container needs an image")
    return ContainerSpec(
        name=name,
        image=image,
        command=reader.command(values, "command", path),
        args=reader.command(values, "args", path),
        idle=idle,
        env=_env(reader, values, path),
        env_from=reader.objects(values, "envFrom", path),
        working_dir=reader.text(values, "workingDir", path),
        resources=_resources(reader, values, path),
        security_context=reader.mapping(values, "securityContext", path) if "securityContext" in values else None,
        volume_mounts=reader.objects(values, "volumeMounts", path),
        ports=reader.objects(values, "ports", path),
        readiness_probe=reader.mapping(values, "readinessProbe", path) or None,
        image_pull_policy=reader.text(values, "imagePullPolicy", path),
    )


def _env(reader: _Reader, values: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], ...]:
    """``NAME: value``, or the list that Kubernetes has, for values that come from a secret."""
    given = values.get("env")
    if isinstance(given, Mapping):
        return tuple({"name": str(name), "value": _plain(value)} for name, value in given.items())
    return reader.objects(values, "env", path)


def _resources(reader: _Reader, values: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """``cpu`` and ``memory`` are short for a request and a limit of the same size."""
    short = {name: reader.text(values, name, path) for name in ("cpu", "memory") if name in values}
    if not short:
        return reader.mapping(values, "resources", path) if "resources" in values else None
    if "resources" in values:
        raise reader.tree.error(_join(path, "resources"), f"there is {' and '.join(short)} already: name one of them")
    return {"requests": short, "limits": short}


def _secrets(reader: _Reader, values: Mapping[str, Any]) -> tuple[str, ...]:
    given = values.get("imagePullSecrets")
    listed = [given] if isinstance(given, str) else given or []
    names = [each.get("name") if isinstance(each, Mapping) else each for each in listed]
    texts = tuple(name for name in names if isinstance(name, str))
    if len(texts) != len(names):
        raise reader.tree.error("imagePullSecrets", f"names of secrets were expected, not {given!r}")
    return texts


def _volumes(reader: _Reader, values: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    volumes = reader.objects(values, "volumes", "")
    for volume in volumes:
        kinds = sorted(set(volume) - {"name"})
        if "name" not in volume or len(kinds) != 1 or kinds[0] not in _VOLUMES:
            raise reader.tree.error(
                "volumes",
                f"{dict(volume)!r}: a name and one of {', '.join(_VOLUMES)} were expected; what reaches a node's own "
                "files, or outlives the sample, is not for sandboxes",
            )
    return volumes


def _network(reader: _Reader, given: Any) -> NetworkRules:
    if given is None or given == "none":
        return NetworkRules()
    if given == "open":
        return NetworkRules(open=True)
    if not isinstance(given, Mapping):
        raise reader.tree.error("network", f"none, open, or a mapping of {', '.join(_NETWORK)}; not {given!r}")
    reader.check_keys(given, "network", _NETWORK)
    cidrs = reader.words(given, "cidrs", "network") or ()
    for cidr in cidrs:
        try:
            ipaddress.ip_network(cidr)
        except ValueError as error:
            raise reader.tree.error("network.cidrs", str(error)) from None
    domains = reader.words(given, "domains", "network") or ()
    for domain in domains:
        if not _DOMAIN.fullmatch(domain):
            raise reader.tree.error(
                "network.domains", f"{domain!r} is no name that can be looked up (patterns can't: name each host)"
            )
    ports = reader.words(given, "ports", "network") or ()
    for port in ports:
        found = _PORT.fullmatch(port)
        if not found or not 0 < int(found[1]) < 65536:
            raise reader.tree.error("network.ports", f"{port!r} is no port, such as 443 or 53/UDP")
    return NetworkRules(cidrs=cidrs, domains=domains, ports=ports, dns=reader.flag(given, "dns", "network"))


class _Reader:
    """Takes values out of a tree; each that is not what it should be is an error with its place."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def check_keys(self, values: Mapping[str, Any], path: str, known: tuple[str, ...]) -> None:
        for name in values:
            if name not in known:
                close = difflib.get_close_matches(str(name), known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
                raise self.tree.error(_join(path, str(name)), f"unknown key; {hint}")

    def text(self, values: Mapping[str, Any], name: str, path: str) -> str | None:
        value = values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.tree.error(_join(path, name), f"a text was expected, not {value!r}")
        return str(value)

    def flag(self, values: Mapping[str, Any], name: str, path: str) -> bool:
        value = values.get(name, False)
        if not isinstance(value, bool):
            raise self.tree.error(_join(path, name), f"true or false was expected, not {value!r}")
        return value

    def number(self, values: Mapping[str, Any], name: str, path: str, default: float | None = None) -> float | None:
        text = self.text(values, name, path)
        if text is None:
            return default
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number < 1e9:
            raise self.tree.error(_join(path, name), f"seconds were expected, not {text!r}")
        return number

    def words(self, values: Mapping[str, Any], name: str, path: str) -> tuple[str, ...] | None:
        """A list of texts; one text alone is a list of one."""
        value = values.get(name)
        if value is None:
            return None
        listed = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in listed):
            raise self.tree.error(_join(path, name), f"a list of texts was expected, not {value!r}")
        return tuple(map(str, listed))

    def command(self, values: Mapping[str, Any], name: str, path: str) -> tuple[str, ...] | None:
        """Words; a text is split into them as a shell would, as in a compose file."""
        value = values.get(name)
        if not isinstance(value, str):
            return self.words(values, name, path)
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise self.tree.error(_join(path, name), f"{value!r} can't be split into words: {error}") from None

    def mapping(self, values: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
        value = values.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.tree.error(_join(path, name), f"a mapping was expected, not {value!r}")
        return value

    def texts(self, values: Mapping[str, Any], name: str) -> Mapping[str, str]:
        return {str(key): _plain(value) for key, value in self.mapping(values, name, "").items()}

    def objects(self, values: Mapping[str, Any], name: str, path: str) -> tuple[Mapping[str, Any], ...]:
        value = values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
            raise self.tree.error(_join(path, name), f"a list of mappings was expected, not {value!r}")
        return tuple(value)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _plain(value: Any) -> str:
    """As YAML has it: `true`, not Python's `True`."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
