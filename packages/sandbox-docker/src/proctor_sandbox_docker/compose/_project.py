"""A compose file, or the same as a dict, as what a sample gets."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from proctor.contracts import UsageError
from proctor_sandbox_docker.compose._document import Document, Given, Node, Place, parse
from proctor_sandbox_docker.compose._env_file import read_env_file
from proctor_sandbox_docker.compose._interpolate import Lookup
from proctor_sandbox_docker.compose._order import start_order, waits_for
from proctor_sandbox_docker.compose._parts import read_pairs
from proctor_sandbox_docker.compose._risks import check_volume
from proctor_sandbox_docker.compose._service import read_fields, read_service
from proctor_sandbox_docker.compose._spec import NetworkSpec, ProjectSpec, ServiceSpec, VolumeSpec

__all__ = ["read_compose", "read_compose_file", "read_settings"]

_TOP = ("services", "networks", "volumes", "include")
_TOP_IGNORED = ("version", "name")
_DEEPEST_INCLUDE = 10


def read_compose_file(path: Path, given: Given) -> ProjectSpec:
    """What the compose file ``path`` asks for.

    Args:
        path: of the file; its relative paths start in its folder, and ``.env`` beside it is read.
        given: what is known of variables and permissions.

    Raises:
        UnsupportedKeyError: a key is not understood here.
        UsageError: anything else is wrong with it; the message names the file, the line and the key.
    """
    return _project(_load(path, given))


def read_compose(value: Mapping[str, Any], folder: Path, given: Given, name: str = "compose") -> ProjectSpec:
    """What ``value``, a compose file as a dict, asks for.

    Args:
        value: with ``services``.
        folder: relative paths in it start there.
        given: as for a file.
        name: of what is read, for errors.

    Raises:
        UsageError: as for a file.
    """
    return _project(Node(dict(value), Document(name, folder, given)))


def read_settings(
    name: str,
    value: Mapping[str, Any],
    folder: Path,
    given: Given,
    keys: Collection[str],
) -> dict[str, Any]:
    """The fields of a ``ServiceSpec`` that settings, written like a service, stand for.

    Args:
        name: of what is set, for errors.
        value: the settings.
        folder: relative paths in it start there.
        given: as for a file.
        keys: those that may be set.

    Raises:
        UsageError: as for a file.
    """
    node = Node(dict(value), Document(f"sandbox {name}", folder, given))
    return read_fields(node, keys)


def _load(path: Path, given: Given) -> Node:
    try:
        stamp = path.stat()
        value, lines = _parsed(str(path), stamp.st_mtime_ns, stamp.st_size)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: can't be read: {error}") from None
    folder = path.parent.resolve()
    beside = replace(given, lookup=_with_file(given.lookup, folder / ".env"))
    return Node(value, Document(str(path), folder, beside, lines))


@lru_cache(maxsize=64)
def _parsed(path: str, changed: int, size: int) -> tuple[Any, dict[Place, int]]:
    """The values of a file; hundreds of samples of one task read it once."""
    return parse(Path(path).read_text(encoding="utf-8"), path)


def _with_file(lookup: Lookup, path: Path) -> Lookup:
    """``lookup``, and for what is not set there the file ``path`` if there is one."""
    if not path.is_file():
        return lookup
    more = read_env_file(path, lookup)

    def both(name: str) -> str | None:
        value = lookup(name)
        return more.get(name) if value is None else value

    return both


@dataclass
class _Parts:
    """What a file and those that it includes say."""

    services: dict[str, tuple[ServiceSpec, Node]] = field(default_factory=dict)
    networks: dict[str, NetworkSpec] = field(default_factory=dict)
    volumes: dict[str, VolumeSpec] = field(default_factory=dict)


def _collect(root: Node, depth: int = 0) -> _Parts:
    if not root.is_mapping():
        raise root.error("a compose file must be a mapping with services")
    fields = dict(root.known(_TOP, ignored=_TOP_IGNORED))
    parts = _Parts()
    for node in _included(fields.get("include"), depth):
        more = _collect(node, depth + 1)
        parts.services.update(more.services)
        parts.networks.update(more.networks)
        parts.volumes.update(more.volumes)
    parts.networks.update({name: _network(name, node) for name, node in _entries(fields, "networks")})
    parts.volumes.update({name: _volume(name, node) for name, node in _entries(fields, "volumes")})
    for name, node in _entries(fields, "services"):
        if name in parts.services:
            raise node.error(f"an included file has a service {name!r}, too")
        parts.services[name] = (read_service(name, node), node)
    return parts


def _project(root: Node) -> ProjectSpec:
    parts = _collect(root)
    if not parts.services:
        raise root.get("services").error("there is no service")
    for service, node in parts.services.values():
        _check_names(service, node, parts)
    started = {name: service for name, (service, _) in parts.services.items() if not service.profiles}
    if not started:
        raise root.get("services").error("every service has a profile, so none would be started")
    services = _wired(started, parts.networks)
    _check_order(root, services)
    used = sorted({name for service in services.values() for name in service.networks})
    mounts = [mount for service in services.values() for mount in service.volumes if mount.kind == "volume"]
    return ProjectSpec(
        services=tuple(services.values()),
        default=_default(root, services.values()),
        networks={name: parts.networks.get(name, NetworkSpec(name)) for name in used},
        volumes={name: parts.volumes[name] for name in sorted({mount.source for mount in mounts if mount.source})},
    )


def _wired(services: dict[str, ServiceSpec], networks: Mapping[str, NetworkSpec]) -> dict[str, ServiceSpec]:
    """Services that name no network get one of the sample's own if there is somebody to talk to, else the engine's."""
    unsaid = {name for name, service in services.items() if service.network_mode is None and not service.networks}
    alone = len(unsaid) == 1 and "default" not in networks
    alone = alone and not any("default" in service.networks for service in services.values())
    wired = {}
    for name, service in services.items():
        if name in unsaid:
            service = replace(service, network_mode="bridge") if alone else replace(service, networks={"default": ()})
        wired[name] = service
    return wired


def _included(node: Node | None, depth: int) -> Iterable[Node]:
    if node is None:
        return
    if depth >= _DEEPEST_INCLUDE:
        raise node.error("files include each other")
    for item in node.each():
        source = item
        if item.is_mapping():
            source = dict(item.known(("path",))).get("path", item.get("path"))
        for path in source.each():
            yield _load(Path(os.path.normpath(item.document.folder / path.text())), item.document.given)


def _entries(fields: Mapping[str, Node], key: str) -> Iterable[tuple[str, Node]]:
    return fields[key].items() if key in fields else ()


def _network(name: str, node: Node) -> NetworkSpec:
    fields = dict(
        node.known(("driver", "driver_opts", "external", "internal", "ipam", "name"), ("attachable", "labels"))
    )
    external = _external(name, fields, node)
    driver = fields["driver"].text() if "driver" in fields else None
    if driver not in (None, "bridge"):
        fields["driver"].unsupported(f"{driver!r} is not supported here; bridge is")
    subnets: list[str] = []
    if "ipam" in fields:
        for _, value in fields["ipam"].known(("config",), ignored=("driver", "options")):
            for item in value.each():
                subnets += [entry.text() for _, entry in item.known(("subnet",), ignored=("gateway", "ip_range"))]
    return NetworkSpec(
        name,
        external=external,
        internal="internal" in fields and fields["internal"].flag(),
        driver=driver,
        subnets=tuple(subnets),
        options=read_pairs(node.get("driver_opts")),
    )


def _volume(name: str, node: Node) -> VolumeSpec:
    fields = dict(node.known(("driver", "driver_opts", "external", "name"), ("labels",)))
    options = read_pairs(node.get("driver_opts"))
    if options:
        check_volume(options, fields["driver_opts"])
    return VolumeSpec(
        name,
        external=_external(name, fields, node),
        driver=fields["driver"].text() if "driver" in fields else None,
        options=options,
    )


def _external(name: str, fields: Mapping[str, Node], node: Node) -> str | None:
    """The name of what is there already; a name alone is one that all samples would share."""
    outside = "external" in fields and fields["external"].flag()
    if "name" in fields and not outside:
        raise fields["name"].error(
            "all samples would share it: leave the name out, or say external: true of what is there already"
        )
    return (fields["name"].text() if "name" in fields else name) if outside else None


def _check_names(service: ServiceSpec, node: Node, parts: _Parts) -> None:
    for name in service.networks:
        if name not in parts.networks and name != "default":
            raise node.get("networks").error(f"the file has no network {name!r} under its networks")
    for mount in service.volumes:
        if mount.kind == "volume" and mount.source is not None and mount.source not in parts.volumes:
            raise node.get("volumes").error(
                f"the file has no volume {mount.source!r} under its volumes; a folder of this machine starts with ./"
            )


def _check_order(root: Node, services: Mapping[str, ServiceSpec]) -> None:
    place = root.get("services")
    for name, service in services.items():
        for other in waits_for(service):
            if other not in services:
                raise place.get(name).error(f"it depends on a service {other!r}, which is not started")
    try:
        start_order(services.values())
    except ValueError as error:
        raise place.error(str(error)) from None


def _default(root: Node, services: Iterable[ServiceSpec]) -> str:
    names = [service.name for service in services]
    marked = [service.name for service in services if service.x_default]
    if len(marked) > 1:
        raise root.get("services").error(f"{' and '.join(marked)} both say x-default: true; one service can")
    return marked[0] if marked else "default" if "default" in names else names[0]
