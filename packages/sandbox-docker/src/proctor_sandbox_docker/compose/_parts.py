"""The values of a service that are more than a scalar: environment, mounts, ports, health checks, dependencies."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import get_args

from proctor_sandbox_docker.compose._document import Node
from proctor_sandbox_docker.compose._env_file import read_env_file
from proctor_sandbox_docker.compose._risks import check_bind, demand
from proctor_sandbox_docker.compose._spec import BuildSpec, HealthSpec, MountSpec, PortSpec, StartCondition

__all__ = [
    "read_build",
    "read_dependencies",
    "read_environment",
    "read_gpus",
    "read_health",
    "read_hosts",
    "read_image",
    "read_mounts",
    "read_networks",
    "read_pairs",
    "read_ports",
    "read_tmpfs",
    "read_ulimits",
]

_CONDITIONS: tuple[StartCondition, ...] = get_args(StartCondition)
_PORTS = re.compile(r"(?:(?:(\[.*\]|[^:]*):)?(\d*)(?:-(\d+))?:)?(\d+)(?:-(\d+))?(?:/(tcp|udp|sctp))?")
_IMAGE = re.compile(
    r"(?:[a-zA-Z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[\w][\w.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]+)?"
)
_MODES = {"rw", "ro", "z", "Z", "cached", "delegated", "consistent", "nocopy"}
_MOST_PORTS = 1000


def read_image(node: Node) -> str:
    """The name of an image, as engines take it."""
    name = node.text()
    if not _IMAGE.fullmatch(name):
        raise node.error(f"{name!r} is no name of an image: names are lower case, such as python:3.12")
    return name


def read_pairs(node: Node) -> dict[str, str]:
    """Names and texts: a mapping, or a list of ``NAME=text``."""
    if node.is_mapping():
        return {key: "" if value.absent else value.text() for key, value in node.entries()}
    found = {}
    for item in node.each():
        name, _, value = item.text().partition("=")
        found[name] = value
    return found


def read_environment(files: Node, node: Node) -> dict[str, str]:
    """The variables of ``env_file``, then those of ``environment``; a name without a value is passed through."""
    found: dict[str, str] = {}
    for variables in _env_files(files):
        found.update(variables)
    if node.is_mapping():
        for key, value in node.entries():
            _put(found, key, None if value.absent else value.text(), node)
    else:
        for item in node.each():
            name, equals, text = item.text().partition("=")
            _put(found, name, text if equals else None, item)
    return found


def _put(found: dict[str, str], name: str, value: str | None, node: Node) -> None:
    if not name or "\0" in name:
        raise node.error(f"{name!r} is no name of a variable")
    value = node.document.given.lookup(name) if value is None else value
    if value is not None:
        found[name] = value


def _env_files(node: Node) -> list[dict[str, str]]:
    found = []
    for item in [node] if node.is_mapping() else node.each():
        source, required = item, True
        if item.is_mapping():
            fields = dict(item.known(("path", "required", "format")))
            source = item.get("path")
            required = fields["required"].flag() if "required" in fields else True
        path = node.document.folder / source.text()
        if path.is_file():
            found.append(read_env_file(path, node.document.given.lookup))
        elif required:
            raise source.error(f"there is no such file: {path}")
    return found


def read_build(node: Node) -> BuildSpec:
    """A folder, or a mapping with ``context``, ``dockerfile``, ``args``, ``target``."""
    folder = node.document.folder
    if node.is_text():
        return _checked_build(BuildSpec(context=_context(node, folder)), node)
    fields = dict(node.known(_BUILD_KEYS, ignored=_BUILD_IGNORED))
    args = node.get("args")
    values = read_pairs(args)
    if not args.is_mapping():  # `- NAME` alone takes the value from the environment of the run
        bare = [item.text() for item in args.each() if "=" not in item.text()]
        values.update({name: node.document.given.lookup(name) or "" for name in bare})
    inline = fields.get("dockerfile_inline")
    return _checked_build(
        BuildSpec(
            context=_context(fields["context"], folder) if "context" in fields else folder,
            dockerfile=fields["dockerfile"].text() if "dockerfile" in fields else "Dockerfile",
            dockerfile_inline=None if inline is None else inline.text(),
            args=values,
            target=fields["target"].text() if "target" in fields else None,
            labels=read_pairs(node.get("labels")),
        ),
        node,
    )


_BUILD_KEYS = ("context", "dockerfile", "dockerfile_inline", "args", "target", "labels")
# What only tells how to build faster, or where to: the image is the same.
_BUILD_IGNORED = ("cache_from", "cache_to", "no_cache", "pull", "tags", "provenance", "sbom")


def _context(node: Node, folder: Path) -> Path:
    text = node.text()
    if re.match(r"[a-z+]+://|git@|github\.com/", text):
        raise node.error(f"the build context must be a folder of this machine, not {text!r}")
    path = Path(os.path.normpath(folder / Path(text).expanduser()))
    if not path.is_dir():
        raise node.error(f"the build context is no folder: {path}")
    return path


def _checked_build(build: BuildSpec, node: Node) -> BuildSpec:
    if build.dockerfile_inline is None and not (build.context / build.dockerfile).is_file():
        where = node if node.is_text() else node.get("dockerfile")
        raise where.error(f"there is no Dockerfile {build.context / build.dockerfile}")
    return build


def read_health(node: Node) -> HealthSpec:
    """A health check; ``disable: true`` and ``test: NONE`` turn off the image's own."""
    fields = dict(node.known(_HEALTH_KEYS, ignored=("start_interval",)))
    if "disable" in fields and fields["disable"].flag():
        return HealthSpec(("NONE",))

    def seconds(name: str) -> float | None:
        return fields[name].seconds() if name in fields else None

    return HealthSpec(
        test=_health_test(fields["test"]) if "test" in fields else (),
        interval=seconds("interval"),
        timeout=seconds("timeout"),
        start_period=seconds("start_period"),
        retries=fields["retries"].whole() if "retries" in fields else None,
    )


_HEALTH_KEYS = ("test", "interval", "timeout", "retries", "start_period", "disable")


def _health_test(node: Node) -> tuple[str, ...]:
    if node.is_text():
        text = node.text()
        return ("NONE",) if text == "NONE" else ("CMD-SHELL", text)
    words = tuple(node.texts())
    form = words[0] if words else ""
    if form not in ("NONE", "CMD", "CMD-SHELL") or (form == "CMD-SHELL" and len(words) != 2) or words == ("CMD",):
        raise node.error(
            "a list must be [CMD, program, argument, ...], [CMD-SHELL, line] or [NONE]; for a line of a shell write "
            "it as a text"
        )
    return words


def read_dependencies(node: Node) -> dict[str, StartCondition]:
    """Names of services, and what is waited for: that they run by default."""
    if not node.is_mapping():
        return dict.fromkeys(node.texts(), "service_started")
    found: dict[str, StartCondition] = {}
    for name, entry in node.items():
        fields = dict(entry.known(("condition", "required", "restart")))
        if "required" in fields and not fields["required"].flag():
            fields["required"].unsupported("false is not supported here")
        condition = fields["condition"].text() if "condition" in fields else "service_started"
        known = next((each for each in _CONDITIONS if each == condition), None)
        if known is None:
            raise fields["condition"].error(f"{condition!r} is not one of {', '.join(_CONDITIONS)}")
        found[name] = known
    return found


def read_mounts(node: Node) -> tuple[MountSpec, ...]:
    """Volumes: ``name:/path:ro``, ``./folder:/path``, ``/path``, or mappings."""
    return tuple(_long_mount(item) if item.is_mapping() else _short_mount(item) for item in node.each())


def _short_mount(node: Node) -> MountSpec:
    parts = node.text().split(":")
    if len(parts) == 1:
        return MountSpec("volume", _absolute(parts[0], node))
    source, target, modes = parts[0], parts[1], parts[2].split(",") if len(parts) == 3 else []
    if len(parts) > 3 or not source or set(modes) - _MODES:
        raise node.error(f"{node.text()!r} is not of the form [SOURCE:]TARGET[:MODE]; modes are ro and rw")
    read_only = "ro" in modes
    if source.startswith((".", "/", "~")):
        return MountSpec("bind", _absolute(target, node), check_bind(source, read_only, node), read_only)
    return MountSpec("volume", _absolute(target, node), source, read_only)


def _long_mount(node: Node) -> MountSpec:
    fields = dict(
        node.known(("type", "source", "src", "target", "destination", "dst", "read_only", "tmpfs"), _MOUNT_IGNORED)
    )
    kind = fields["type"].text() if "type" in fields else "volume"
    target = next((fields[name] for name in ("target", "destination", "dst") if name in fields), None)
    if target is None:
        raise node.error("a mount needs a target")
    source = next((fields[name].text() for name in ("source", "src") if name in fields), None)
    place, read_only = _absolute(target.text(), target), "read_only" in fields and fields["read_only"].flag()
    if kind == "bind":
        if source is None:
            raise node.error("a bind needs a source")
        return MountSpec("bind", place, check_bind(source, read_only, node), read_only)
    if kind == "tmpfs":
        inner = dict(fields["tmpfs"].known(("size",), ("mode",))) if "tmpfs" in fields else {}
        return MountSpec("tmpfs", place, None, read_only, inner["size"].size() if "size" in inner else None)
    if kind != "volume":
        raise fields["type"].error(f"{kind!r} is not one of volume, bind, tmpfs")
    return MountSpec("volume", place, source, read_only)


_MOUNT_IGNORED = ("consistency", "bind", "volume")


def read_tmpfs(node: Node) -> tuple[MountSpec, ...]:
    """Folders in memory: ``/run`` or ``/run:size=64m,mode=1777``."""
    found = []
    for item in node.each():
        target, _, options = item.text().partition(":")
        size = re.search(r"(?:^|,)size=([^,]+)", options)
        amount = None if size is None else Node(size[1], item.document, item.place).size()
        found.append(MountSpec("tmpfs", _absolute(target, item), None, "ro" in options.split(","), amount))
    return tuple(found)


def _absolute(target: str, node: Node) -> str:
    if not target.startswith("/"):
        raise node.error(f"the target {target!r} must be an absolute path in the container")
    return target


def read_ports(node: Node) -> tuple[PortSpec, ...]:
    """Ports: ``"80"`` (any free port of the host), ``"8080:80"``, ``"127.0.0.1:8080:80/udp"``, ranges, or mappings."""
    return tuple(port for item in node.each() for port in (_long_port(item) if item.is_mapping() else _ports(item)))


def _ports(node: Node) -> list[PortSpec]:
    match = _PORTS.fullmatch(node.text())
    if match is None:
        raise node.error(f"{node.text()!r} is not of the form [[ADDRESS:]HOST_PORT:]PORT[/PROTOCOL]")
    address, first, last, start, end, protocol = match.groups()
    inside = range(int(start), int(end or start) + 1)
    outside = range(int(first), int(last or first) + 1) if first else None
    if not inside or len(inside) > _MOST_PORTS or (outside is not None and len(outside) != len(inside)):
        raise node.error(f"{node.text()!r}: the ranges of ports must be of the same length, {_MOST_PORTS} at most")
    if inside[-1] > 65535 or (outside is not None and outside[-1] > 65535):
        raise node.error(f"{node.text()!r}: a port is at most 65535")
    return [
        PortSpec(
            f"{port}/{protocol or 'tcp'}",
            outside[index] or None if outside is not None else None,
            (address or "127.0.0.1").strip("[]"),
        )
        for index, port in enumerate(inside)
    ]


def _long_port(node: Node) -> list[PortSpec]:
    fields = dict(node.known(("target", "published", "protocol", "host_ip"), ("mode", "name", "app_protocol")))
    if "target" not in fields:
        raise node.error("a port needs a target")
    protocol = fields["protocol"].text() if "protocol" in fields else "tcp"
    published = fields["published"].whole() or None if "published" in fields else None
    address = fields["host_ip"].text() if "host_ip" in fields else "127.0.0.1"
    return [PortSpec(f"{fields['target'].whole()}/{protocol}", published, address)]


def read_networks(node: Node) -> dict[str, tuple[tuple[str, ...], str | None]]:
    """Names of networks, with the service's further names and its fixed address in each."""
    if not node.is_mapping():
        return dict.fromkeys(node.texts(), ((), None))
    found = {}
    for name, entry in node.items():
        fields = dict(entry.known(("aliases", "ipv4_address"), ("priority", "gw_priority")))
        aliases = tuple(fields["aliases"].texts()) if "aliases" in fields else ()
        found[name] = (aliases, fields["ipv4_address"].text() if "ipv4_address" in fields else None)
    return found


def read_hosts(node: Node) -> dict[str, str]:
    """Names and addresses: ``name:address``, ``name=address`` or a mapping."""
    if node.is_mapping():
        return {name: value.text() for name, value in node.entries()}
    found = {}
    for item in node.each():
        match = re.fullmatch(r"([^:=]+)[:=](.+)", item.text())
        if match is None:
            raise item.error(f"{item.text()!r} is not of the form NAME:ADDRESS")
        found[match[1].strip()] = match[2].strip().strip("[]")
    return found


def read_ulimits(node: Node) -> dict[str, tuple[int, int]]:
    """Limits: one number, or ``soft`` and ``hard``."""
    found = {}
    for name, entry in node.entries():
        if entry.is_mapping():
            fields = dict(entry.known(("soft", "hard")))
            if len(fields) != 2:
                raise entry.error("needs soft and hard")
            found[name] = (fields["soft"].whole(), fields["hard"].whole())
        else:
            found[name] = (entry.whole(), entry.whole())
    return found


def read_gpus(node: Node) -> int | None:
    """How many GPUs: ``all`` is -1; of a list of devices the greatest count."""
    if node.absent:
        return None
    if not isinstance(node.value, list):
        return -1 if node.text() == "all" else node.whole()
    most = None
    for item in node.each():
        fields = dict(item.known(("driver", "count", "capabilities"), ("options",)))
        if "gpu" not in (fields["capabilities"].texts() if "capabilities" in fields else ["gpu"]):
            demand("devices", "asks for a device of this machine", item)
        count = fields.get("count")
        number = -1 if count is None or count.text() == "all" else count.whole()
        most = number if most is None or -1 in (most, number) else max(most, number)
        most = -1 if -1 in (most, number) else most
    return most
