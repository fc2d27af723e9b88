"""How a service becomes a container, with the least that it needs to be allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from docker import APIClient
from docker.errors import APIError

from proctor_sandbox_docker._box import Container
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker.compose import HealthSpec, MountSpec, ServiceSpec

__all__ = [
    "PIDS_LIMIT",
    "WORKING_DIR",
    "Place",
    "container_config",
    "container_of",
    "create_and_start",
]

WORKING_DIR = "/workspace"
"""Where commands start when neither the configuration nor the image says."""
PIDS_LIMIT = 1024
"""Processes and threads of a container, unless told otherwise."""
DROPPED = ("AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP", "SETPCAP", "SYS_CHROOT")
"""Of the capabilities that engines give to root, those that package managers, servers and ``su`` do without."""
_START_SECONDS = 120.0
# It reaps what is orphaned, as the first process must, in images that have a shell; the engine's own `init` does, too.
_WAIT = ["sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"]


@dataclass(frozen=True, slots=True)
class Place:
    """What surrounds a container.

    Args:
        networks: names or ids of the engine's networks, by the project's names; empty: ``network_mode`` decides.
        network_mode: instead of the service's, such as ``container:ID``.
        volumes: names of the engine's volumes, by the project's names.
        working_dir: where commands start when the service does not say.
        has_init: whether the engine has an ``init`` of its own for containers.
    """

    networks: Mapping[str, str] = field(default_factory=dict)
    network_mode: str | None = None
    volumes: Mapping[str, str] = field(default_factory=dict)
    working_dir: str = WORKING_DIR
    has_init: bool = True


async def create_and_start(
    engine: Engine, service: ServiceSpec, name: str, labels: Mapping[str, str], place: Place
) -> Container:
    """Make a container and start it; what could not be started is removed again.

    Args:
        engine: that it is made in.
        service: what it is to be; its image is there.
        name: of the container.
        labels: that it gets beside the service's own.
        place: what surrounds it.

    Raises:
        SandboxBrokenError: the engine can't.
        docker.errors.APIError: it refuses: what it was asked for makes no sense to it.
    """
    if place.has_init and not engine.info.get("InitBinary"):
        place = replace(place, has_init=False)
    config = container_config(service, labels, place)
    others = list(service.networks)[1:]

    def make(client: APIClient) -> dict[str, Any]:
        made = client.create_container_from_config(config, name, service.platform)["Id"]
        try:
            for network in others:
                options = _endpoint(service, network, client)
                client.connect_container_to_network(made, place.networks[network], **options)
            client.start(made)
            found: dict[str, Any] = client.inspect_container(made)
        except BaseException:
            _remove(client, made)
            raise
        return found

    found = await engine.call(
        "start a container", make, seconds=_START_SECONDS, dispose=lambda client, made: _remove(client, made["Id"])
    )
    return container_of(found, service.name)


def _endpoint(service: ServiceSpec, network: str, client: APIClient) -> dict[str, Any]:
    options: dict[str, Any] = {"aliases": [service.name, *service.networks[network]]}
    if address := service.addresses.get(network):
        options["ipv6_address" if ":" in address else "ipv4_address"] = address
    return options


def _remove(client: APIClient, container: str) -> None:
    with suppress(APIError):
        client.remove_container(container, force=True, v=True)


def container_of(found: dict[str, Any], service: str) -> Container:
    """What is to be known of a container of ``service`` that the engine told of."""
    host, config = found["HostConfig"], found["Config"]
    ports = {}
    for port, bindings in (found.get("NetworkSettings", {}).get("Ports") or {}).items():
        if bindings:
            ports[port] = int(bindings[0]["HostPort"])
    mounted = [mount["Destination"] for mount in found.get("Mounts") or () if mount.get("Type") == "tmpfs"]
    return Container(
        id=found["Id"],
        name=found["Name"].lstrip("/"),
        service=service,
        working_dir=config.get("WorkingDir") or "/",
        user=config.get("User") or "",
        in_memory=tuple(dict.fromkeys([*(host.get("Tmpfs") or ()), *mounted])),
        ports=ports,
    )


def container_config(service: ServiceSpec, labels: Mapping[str, str], place: Place) -> dict[str, Any]:
    """What the engine is asked to make, as its API has it."""
    config: dict[str, Any] = {
        "Image": service.image,
        "Labels": {**service.labels, **labels},
        "Env": [f"{name}={value}" for name, value in service.environment.items()],
        "WorkingDir": service.working_dir or place.working_dir,
        "HostConfig": _host_config(service, place),
    }
    entrypoint, command = service.entrypoint, service.command
    if service.keep_alive and entrypoint is None and command is None:
        entrypoint, command = tuple(_WAIT), ()
    given: dict[str, Any] = {
        "Entrypoint": None if entrypoint is None else list(entrypoint),
        "Cmd": None if command is None else list(command),
        "User": service.user,
        "Hostname": service.hostname,
        "Tty": service.tty or None,
        "OpenStdin": service.stdin_open or None,
        "StopSignal": service.stop_signal,
        "ExposedPorts": {port.target: {} for port in service.ports} or None,
        "Healthcheck": None if service.healthcheck is None else _health(service.healthcheck),
        "NetworkingConfig": _first_network(service, place),
    }
    return config | {name: value for name, value in given.items() if value is not None}


def _first_network(service: ServiceSpec, place: Place) -> dict[str, Any] | None:
    if not place.networks or not service.networks:
        return None
    network = next(iter(service.networks))
    endpoint: dict[str, Any] = {"Aliases": [service.name, *service.networks[network]]}
    if address := service.addresses.get(network):
        endpoint["IPAMConfig"] = {"IPv6Address" if ":" in address else "IPv4Address": address}
    return {"EndpointsConfig": {place.networks[network]: endpoint}}


def _health(health: HealthSpec) -> dict[str, Any]:
    found: dict[str, Any] = {"Test": list(health.test)}
    for name, seconds in (
        ("Interval", health.interval),
        ("Timeout", health.timeout),
        ("StartPeriod", health.start_period),
    ):
        if seconds is not None:
            found[name] = int(seconds * 1e9)
    if health.retries is not None:
        found["Retries"] = health.retries
    return found


def _host_config(service: ServiceSpec, place: Place) -> dict[str, Any]:
    mode = place.network_mode or service.network_mode or "none"
    if place.networks and service.networks:
        mode = place.networks[next(iter(service.networks))]
    host: dict[str, Any] = {
        "NetworkMode": mode,
        "Init": _init(service, place),
        "PidsLimit": service.pids_limit or PIDS_LIMIT,
        "SecurityOpt": _security(service.security_opt),
        "CapDrop": _dropped(service),
        "CapAdd": list(service.cap_add),
    }
    given: dict[str, Any] = {
        "Privileged": service.privileged or None,
        "ReadonlyRootfs": service.read_only or None,
        "NanoCpus": None if service.cpus is None else int(service.cpus * 1e9),
        "Memory": service.mem_limit,
        "ShmSize": service.shm_size,
        "PidMode": service.pid,
        "IpcMode": service.ipc,
        "GroupAdd": list(service.group_add) or None,
        "Runtime": service.runtime,
        "Dns": list(service.dns) or None,
        "ExtraHosts": [f"{name}:{address}" for name, address in service.extra_hosts.items()] or None,
        "Sysctls": dict(service.sysctls) or None,
        "Ulimits": [{"Name": name, "Soft": soft, "Hard": hard} for name, (soft, hard) in service.ulimits.items()]
        or None,
        "Devices": [_device(each) for each in service.devices] or None,
        "DeviceRequests": _gpus(service.gpus),
        "Mounts": [_mount(each, place) for each in service.volumes if each.kind != "tmpfs"] or None,
        "Tmpfs": {each.target: _tmpfs(each) for each in service.volumes if each.kind == "tmpfs"} or None,
        "PortBindings": _bindings(service) or None,
        "RestartPolicy": None if service.restart is None else _restart(service.restart),
    }
    return host | {name: value for name, value in given.items() if value is not None}


def _init(service: ServiceSpec, place: Place) -> bool:
    """Whether the engine's own program comes first; what waits for us in a container does its work as well."""
    if not place.has_init and (service.init is None or service.keep_alive):
        return False
    return service.init is not False


def _security(options: Sequence[str]) -> list[str]:
    """No program gets more rights than who starts it has, unless the configuration says so itself."""
    if any(option.startswith("no-new-privileges") for option in options):
        return list(options)
    return ["no-new-privileges", *options]


def _dropped(service: ServiceSpec) -> list[str]:
    asked = {_capability(name) for name in service.cap_add}
    if "ALL" in asked:
        return list(service.cap_drop)
    return [*service.cap_drop, *(name for name in DROPPED if name not in asked)]


def _capability(name: str) -> str:
    return name.upper().removeprefix("CAP_")


def _device(text: str) -> dict[str, str]:
    parts = text.split(":")
    return {
        "PathOnHost": parts[0],
        "PathInContainer": parts[1] if len(parts) > 1 and parts[1] else parts[0],
        "CgroupPermissions": parts[2] if len(parts) > 2 else "rwm",
    }


def _gpus(count: int | None) -> list[dict[str, Any]] | None:
    return None if count is None else [{"Driver": "", "Count": count, "Capabilities": [["gpu"]]}]


def _mount(mount: MountSpec, place: Place) -> dict[str, Any]:
    found: dict[str, Any] = {"Type": mount.kind, "Target": mount.target, "ReadOnly": mount.read_only}
    if mount.source is not None:
        found["Source"] = place.volumes.get(mount.source, mount.source) if mount.kind == "volume" else mount.source
    return found


def _tmpfs(mount: MountSpec) -> str:
    options = ["ro"] if mount.read_only else []
    return ",".join(options if mount.size is None else [*options, f"size={mount.size}"])


def _bindings(service: ServiceSpec) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for port in service.ports:
        published = "" if port.published is None else str(port.published)
        found.setdefault(port.target, []).append({"HostIp": port.host_ip, "HostPort": published})
    return found


def _restart(policy: str) -> dict[str, Any]:
    name, _, times = policy.partition(":")
    return {"Name": name, "MaximumRetryCount": int(times or 0)}
