"""What a sample's containers are to be: made from a configuration, started by the lifecycle.

Nothing here talks to an engine. Times are seconds, sizes are bytes, paths of this machine are absolute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

__all__ = [
    "BuildSpec",
    "HealthSpec",
    "MountSpec",
    "NetworkSpec",
    "PortSpec",
    "ProjectSpec",
    "ServiceSpec",
    "StartCondition",
    "VolumeSpec",
]

StartCondition = Literal["service_started", "service_healthy", "service_completed_successfully"]


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """An image that is built.

    Args:
        context: the folder that is sent to the engine.
        dockerfile: relative to ``context``.
        dockerfile_inline: the text of a Dockerfile, instead of a file.
        args: build arguments.
        target: the stage to stop at.
        labels: of the image.
    """

    context: Path
    dockerfile: str = "Dockerfile"
    dockerfile_inline: str | None = None
    args: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HealthSpec:
    """How the engine finds out whether a service is ready.

    Args:
        test: as the API takes it: ``("CMD", ...)``, ``("CMD-SHELL", "...")`` or ``("NONE",)``.
    """

    test: tuple[str, ...]
    interval: float | None = None
    timeout: float | None = None
    start_period: float | None = None
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class MountSpec:
    """What is mounted into a container.

    Args:
        source: a path of this machine (``bind``), the name of a volume of the project (``volume``; ``None`` is an
            anonymous one), ``None`` (``tmpfs``).
        size: of a ``tmpfs``.
    """

    kind: Literal["bind", "volume", "tmpfs"]
    target: str
    source: str | None = None
    read_only: bool = False
    size: int | None = None


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A port of a container that the host shows.

    Args:
        target: ``"8080/tcp"``.
        published: port of the host; ``None`` = any that is free.
        host_ip: address of the host; only this machine by default.
    """

    target: str
    published: int | None = None
    host_ip: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """One container of a sample.

    What is ``None`` is left to the image or to the provider's safe default.

    Args:
        name: of the service: its host name in networks, and the name of the sandbox.
        image: what it runs, by name; with ``build``, the name that the built image gets.
        build: how its image is made; ``None`` = pulled when it is not there.
        command: the arguments of the entry point; with neither this nor ``entrypoint``, ``keep_alive`` decides.
        keep_alive: run something that only waits, in place of the image's own command.
        networks: names of the project's networks, with the service's further names in each. Empty = ``network_mode``.
        addresses: fixed addresses in networks, by the network's name.
        network_mode: ``none`` (the default), ``bridge`` (the engine's own network), ``host`` or ``service:NAME``.
        volumes: what is mounted.
        depends_on: services that come first, and what is waited for.
        mem_limit: bytes. ``cpus``: CPUs, such as 0.5. ``pids_limit``: processes and threads.
        x_default: this is the sample's default sandbox.
        x_local: never pull the image: it is made on this machine.
    """

    name: str
    image: str | None = None
    build: BuildSpec | None = None
    command: tuple[str, ...] | None = None
    entrypoint: tuple[str, ...] | None = None
    keep_alive: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    working_dir: str | None = None
    hostname: str | None = None
    init: bool | None = None
    read_only: bool = False
    tty: bool = False
    volumes: tuple[MountSpec, ...] = ()
    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    network_mode: str | None = None
    pid: str | None = None
    ipc: str | None = None
    group_add: tuple[str, ...] = ()
    restart: str | None = None
    stop_signal: str | None = None
    stdin_open: bool = False
    profiles: tuple[str, ...] = ()
    ports: tuple[PortSpec, ...] = ()
    extra_hosts: Mapping[str, str] = field(default_factory=dict)
    dns: tuple[str, ...] = ()
    depends_on: Mapping[str, StartCondition] = field(default_factory=dict)
    healthcheck: HealthSpec | None = None
    cpus: float | None = None
    mem_limit: int | None = None
    shm_size: int | None = None
    pids_limit: int | None = None
    ulimits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    gpus: int | None = None
    runtime: str | None = None
    platform: str | None = None
    privileged: bool = False
    cap_add: tuple[str, ...] = ()
    cap_drop: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    stop_grace_period: float | None = None
    x_default: bool = False
    x_local: bool = False


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """A network of a sample, or one that is there already.

    Args:
        external: the name of a network that is there already, and stays.
        internal: without a way out of the host.
    """

    name: str
    external: str | None = None
    internal: bool = False
    driver: str | None = None
    subnets: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VolumeSpec:
    """A named volume of a sample, or one that is there already.

    Args:
        external: the name of a volume that is there already, and stays.
    """

    name: str
    external: str | None = None
    driver: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProjectSpec:
    """All that one sample gets.

    Args:
        services: in the order of the configuration.
        default: the name of the service that is the sample's default sandbox.
        networks: those that services name, by name.
        volumes: those that services name, by name.
    """

    services: tuple[ServiceSpec, ...]
    default: str
    networks: Mapping[str, NetworkSpec] = field(default_factory=dict)
    volumes: Mapping[str, VolumeSpec] = field(default_factory=dict)

    def service(self, name: str) -> ServiceSpec:
        """The service of this name."""
        return next(service for service in self.services if service.name == name)
