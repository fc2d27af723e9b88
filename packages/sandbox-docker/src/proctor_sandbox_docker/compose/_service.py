"""One service of a compose file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from proctor_sandbox_docker.compose._document import Node
from proctor_sandbox_docker.compose._parts import (
    read_build,
    read_dependencies,
    read_environment,
    read_gpus,
    read_health,
    read_hosts,
    read_image,
    read_mounts,
    read_networks,
    read_pairs,
    read_ports,
    read_tmpfs,
    read_ulimits,
)
from proctor_sandbox_docker.compose._risks import check_capabilities, demand
from proctor_sandbox_docker.compose._spec import ServiceSpec

__all__ = ["read_fields", "read_service"]

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*")


def read_service(name: str, node: Node) -> ServiceSpec:
    """The service ``name``.

    Raises:
        UsageError: something is wrong; the message names the file, the line and the key.
    """
    if not _NAME.fullmatch(name):
        raise node.error("a service's name has letters, digits, `.`, `_` and `-`")
    if not node.is_mapping():
        raise node.error("a service must be a mapping with image or build")
    found = read_fields(node, _READERS.keys() | _TOGETHER, _IGNORED)
    found["name"] = name
    _put_networks(found, node)
    _put_deploy(found, node.get("deploy"))
    if not node.get("scale").absent:
        _once(node.get("scale"))
    for flag in ("x-default", "x-local"):
        if not node.get(flag).absent:
            found[flag.replace("-", "_")] = node.get(flag).flag()
    if "image" not in found and "build" not in found and not node.get("image").later:
        raise node.error("needs image or build")
    return ServiceSpec(**found)


def read_fields(node: Node, keys: Collection[str], ignored: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a ``ServiceSpec`` that ``node`` says something of, by keys that stand for themselves.

    Args:
        node: a service.
        keys: those that may stand there.
        ignored: those that may stand there and mean nothing.
    """
    found: dict[str, Any] = {}
    for key, value in node.known(keys, ignored=ignored):
        if key in _READERS:
            field, reader = _READERS[key]
            found[field] = reader(value)
    if environment := read_environment(node.get("env_file"), node.get("environment")):
        found["environment"] = environment
    if volumes := read_mounts(node.get("volumes")) + read_tmpfs(node.get("tmpfs")):
        found["volumes"] = volumes
    return found


def _put_networks(found: dict[str, Any], node: Node) -> None:
    """Networks, with the names and addresses of the service in each."""
    networks = read_networks(node.get("networks"))
    mode = node.get("network_mode")
    if networks and not mode.absent:
        raise mode.error("a service has networks or a network_mode, not both")
    own = node.get("container_name")  # names of containers differ between samples; others still find it by this one
    more = () if own.absent or own.later else (own.text(),)
    found["networks"] = {name: (*aliases, *more) for name, (aliases, _) in networks.items()}
    found["addresses"] = {name: address for name, (_, address) in networks.items() if address is not None}


def _put_deploy(found: dict[str, Any], node: Node) -> None:
    """Limits and devices of ``deploy``; the older keys of a service itself go over them."""
    fields = dict(node.known(("resources", "replicas"), _DEPLOY_IGNORED))
    if "replicas" in fields:
        _once(fields["replicas"])
    if "resources" not in fields:
        return
    parts = dict(fields["resources"].known(("limits", "reservations")))
    if "limits" in parts:
        for key, value in parts["limits"].known(_LIMITS):
            field, reader = _LIMITS[key]
            found.setdefault(field, reader(value))
    if "reservations" in parts:
        for _, value in parts["reservations"].known(("devices",), ignored=("cpus", "memory")):
            found.setdefault("gpus", read_gpus(value))


def _once(node: Node) -> int:
    if node.whole() != 1:
        node.unsupported("a service has one container here")
    return 1


def _network_mode(node: Node) -> str:
    mode = node.text()
    if mode == "host":
        demand("host-network", "network_mode: host is the network of this machine", node)
    if mode not in ("none", "bridge", "host") and not mode.startswith("service:"):
        node.unsupported(f"{mode!r} is not one of none, bridge, host, service:NAME")
    return mode


def _host_processes(node: Node) -> str:
    if node.text() == "host":
        demand("host-processes", "shares processes or memory of this machine", node)
    elif node.text() not in ("private", "shareable"):
        node.unsupported(f"{node.text()!r} is not supported here")
    return node.text()


def _privileged(node: Node) -> bool:
    if node.flag():
        demand("privileged", "a privileged container has all devices and rights of this machine", node)
    return node.flag()


def _devices(node: Node) -> tuple[str, ...]:
    devices = tuple(node.texts())
    if devices:
        demand("devices", "gives devices of this machine", node)
    return devices


def _positive(node: Node) -> float:
    if node.number() <= 0:
        raise node.error("must be more than 0")
    return node.number()


def _pids(node: Node) -> int:
    return node.whole()


def _texts(node: Node) -> tuple[str, ...]:
    return tuple(node.texts())


def _command(node: Node) -> tuple[str, ...]:
    return tuple(node.command())


_LIMITS: dict[str, tuple[str, Callable[[Node], Any]]] = {
    "cpus": ("cpus", _positive),
    "memory": ("mem_limit", Node.size),
    "pids": ("pids_limit", _pids),
}

_READERS: dict[str, tuple[str, Callable[[Node], Any]]] = {
    "build": ("build", read_build),
    "cap_add": ("cap_add", lambda node: check_capabilities(node, added=True)),
    "cap_drop": ("cap_drop", lambda node: check_capabilities(node, added=False)),
    "command": ("command", _command),
    "cpus": ("cpus", _positive),
    "depends_on": ("depends_on", read_dependencies),
    "devices": ("devices", _devices),
    "dns": ("dns", _texts),
    "entrypoint": ("entrypoint", _command),
    "extra_hosts": ("extra_hosts", read_hosts),
    "gpus": ("gpus", read_gpus),
    "group_add": ("group_add", _texts),
    "healthcheck": ("healthcheck", read_health),
    "hostname": ("hostname", Node.text),
    "image": ("image", read_image),
    "init": ("init", Node.flag),
    "ipc": ("ipc", _host_processes),
    "labels": ("labels", read_pairs),
    "mem_limit": ("mem_limit", Node.size),
    "network_mode": ("network_mode", _network_mode),
    "pid": ("pid", _host_processes),
    "pids_limit": ("pids_limit", _pids),
    "platform": ("platform", Node.text),
    "ports": ("ports", read_ports),
    "privileged": ("privileged", _privileged),
    "profiles": ("profiles", _texts),
    "read_only": ("read_only", Node.flag),
    "restart": ("restart", Node.text),
    "runtime": ("runtime", Node.text),
    "security_opt": ("security_opt", _texts),
    "shm_size": ("shm_size", Node.size),
    "stdin_open": ("stdin_open", Node.flag),
    "stop_grace_period": ("stop_grace_period", Node.seconds),
    "stop_signal": ("stop_signal", Node.text),
    "sysctls": ("sysctls", read_pairs),
    "tty": ("tty", Node.flag),
    "ulimits": ("ulimits", read_ulimits),
    "user": ("user", Node.text),
    "working_dir": ("working_dir", Node.text),
}
"""Key -> field of ``ServiceSpec``, and what reads it."""

_TOGETHER = {"container_name", "deploy", "env_file", "environment", "networks", "scale", "tmpfs", "volumes"}
"""Keys that are read beside others."""

_IGNORED = {"attach", "domainname", "expose", "logging", "mem_reservation", "pull_policy", "cpu_shares"}
"""Keys without a bearing on a sample: what is exposed is reachable anyway, an image that is not there is pulled."""

_DEPLOY_IGNORED = ("endpoint_mode", "labels", "mode", "placement", "restart_policy", "update_config", "rollback_config")
