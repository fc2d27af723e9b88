"""What a file may ask for that hands this machine to whoever runs inside: refused, unless the user allows it.

A compose file often comes with a dataset that somebody else wrote, so a permission is given outside of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from proctor.contracts import UsageError
from proctor_sandbox_docker.compose._document import Node
from proctor_sandbox_docker.compose._spec import ProjectSpec

__all__ = [
    "ALLOW", "RISKS", "allowed_risks", "check_bind", "check_capabilities", "check_volume", "demand", "project_risks",
]  # fmt: skip

ALLOW = "PROCTOR_DOCKER_ALLOW"
RISKS = ("privileged", "docker-socket", "host-network", "host-processes", "host-files", "devices")
"""Names that ``PROCTOR_DOCKER_ALLOW`` may list, comma separated."""

_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock", "crio.sock", "dockershim.sock")
_TAKES_HOST = {
    "ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "SYS_BOOT", "SYS_TIME", "DAC_READ_SEARCH", "MAC_ADMIN", "BPF",
    "PERFMON", "SYSLOG",
}  # fmt: skip
_HOST_FOLDERS = ("/", "/boot", "/dev", "/etc", "/proc", "/root", "/run", "/sys", "/usr", "/var", "/var/run", "/home")
_SYSTEM = tuple(("/", name) for name in ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys"))
"""Nothing below these is to be changed."""
_HARMLESS_FILESYSTEMS = ("tmpfs", "nfs", "nfs4", "cifs")
"""Types of volumes that are no files of this machine."""


def allowed_risks(said: str) -> frozenset[str]:
    """The names in ``said``, separated by commas or ``+``.

    Raises:
        UsageError: one of them is unknown.
    """
    names = frozenset(name.strip() for name in said.replace("+", ",").split(",") if name.strip())
    if unknown := names - set(RISKS):
        raise UsageError(f"{ALLOW}: {', '.join(sorted(unknown))} can't be allowed; known are {', '.join(RISKS)}")
    return names


def demand(risk: str, text: str, node: Node) -> None:
    """Refuse what ``node`` asks for, unless ``risk`` is allowed."""
    if risk not in node.document.given.allowed:
        raise node.error(
            f"{text}; what runs in the container could take over the host. If you trust what will run there, "
            f"allow it with {ALLOW}={risk}"
        )


def check_bind(source: str, read_only: bool, node: Node) -> str:
    """The absolute path of what is to be mounted from this machine.

    Raises:
        UsageError: there is no such file, or it is one that would hand over the machine.
    """
    path = os.path.normpath(node.document.folder / Path(source).expanduser())
    if os.path.basename(path) in _SOCKETS or os.path.basename(os.path.realpath(path)) in _SOCKETS:
        demand("docker-socket", f"mounts the engine's own socket {path}", node)
    elif socket := _socket_within(path):
        demand("docker-socket", f"mounts {path}, and with it the engine's own socket {socket}", node)
    elif path in _HOST_FOLDERS or os.path.realpath(path) in _HOST_FOLDERS:
        demand("host-files", f"mounts {path} of the host", node)
    elif not read_only and Path(os.path.realpath(path)).parts[:2] in _SYSTEM:
        demand("host-files", f"mounts {path} of the host without :ro", node)
    if not os.path.exists(path):
        raise node.error(f"there is no file or folder {path} to mount")
    return path


def _socket_within(path: str) -> str | None:
    """The socket of an engine that ``path`` is, or that lies in the folder ``path``."""
    real = os.path.realpath(path)
    scheme, _, address = os.environ.get("DOCKER_HOST", "").partition("://")
    if scheme == "unix" and real != "/" and Path(os.path.realpath(address)).is_relative_to(real):
        return address
    there = (os.path.join(path, name) for name in _SOCKETS)
    return next((socket for socket in there if real not in _HOST_FOLDERS and os.path.exists(socket)), None)


def check_volume(options: Mapping[str, str], node: Node) -> None:
    """A named volume may be a folder of this machine, or a file system of it: as if it was mounted by itself.

    Raises:
        UsageError: as for ``check_bind``.
    """
    flags = options.get("o", "").split(",")
    kind, device = options.get("type", "none"), options.get("device", "")
    if device and {"bind", "rbind"} & {flag.strip() for flag in flags}:
        check_bind(device, "ro" in flags, node)
    elif kind not in ("none", "", *_HARMLESS_FILESYSTEMS):
        demand("host-files", f"mounts {device or kind} of the host as {kind}", node)


def check_capabilities(node: Node, added: bool) -> tuple[str, ...]:
    """Capabilities by their names, without ``CAP_``."""
    found = tuple(name.upper().removeprefix("CAP_") for name in node.texts())
    for name in found:
        if added and name in _TAKES_HOST:
            demand("privileged", f"asks for the capability {name}", node)
    return found


def project_risks(project: ProjectSpec) -> Iterator[str]:
    """What a user should know of a project that is allowed: files of this machine that can be changed, open doors."""
    for name, volume in project.volumes.items():
        if "bind" in volume.options.get("o", "") and "ro" not in volume.options["o"].split(","):
            yield f"the volume {name!r} is {volume.options.get('device')} of this machine (mounted without ro)"
    for service in project.services:
        for mount in service.volumes:
            if mount.kind == "bind" and not mount.read_only:
                yield f"service {service.name!r} can change {mount.source} of this machine (mounted without :ro)"
        if service.privileged:
            yield f"service {service.name!r} is privileged: what runs in it can take over this machine"
        if service.network_mode == "host":
            yield f"service {service.name!r} is in the network of this machine, local services included"
        for port in service.ports:
            if port.host_ip in ("0.0.0.0", "::", ""):
                yield f"service {service.name!r} shows port {port.target} to every network of this machine"
