"""What each key of a compose file becomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.contracts import UsageError
from proctor_sandbox_docker.compose import (
    RISKS,
    BuildSpec,
    Given,
    HealthSpec,
    MountSpec,
    PortSpec,
    ServiceSpec,
    UnsupportedKeyError,
    project_risks,
    read_compose_file,
)

HOST = {"FROM_HOST": "here"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as a task has it."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "app" / "dev.Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "web.env").write_text("A=file\nB=file\n")
    return tmp_path


@pytest.fixture
def service(folder: Path) -> Callable[..., ServiceSpec]:
    """Reads one service from its lines, below ``image: busybox``."""

    def read(lines: str, allowed: tuple[str, ...] = (), image: str = "    image: busybox\n") -> ServiceSpec:
        text = "".join(f"    {line}\n" for line in lines.splitlines())
        file = folder / "compose.yaml"
        file.write_text(
            f"services:\n  web:\n{image}{text}  db:\n    image: busybox\nnetworks:\n  inner:\nvolumes:\n  store:\n"
        )
        return read_compose_file(file, Given(HOST.get, allowed=allowed)).service("web")

    return read


@pytest.mark.parametrize(
    ("lines", "field", "expected"),
    [
        ("command: tail -f '/dev/null'", "command", ("tail", "-f", "/dev/null")),
        ("command: [sh, -c, 'echo $$HOME']", "command", ("sh", "-c", "echo $HOME")),
        ("command: []", "command", ()),
        ("entrypoint: []", "entrypoint", ()),
        ("entrypoint: /run.sh --now", "entrypoint", ("/run.sh", "--now")),
        ("environment: [A=1, B=x=y, FROM_HOST, NOWHERE]", "environment", {"A": "1", "B": "x=y", "FROM_HOST": "here"}),
        ("environment:\n  A: 1\n  B: true\n  C: 1.50\n  FROM_HOST:\n  D: ''", "environment",
         {"A": "1", "B": "true", "C": "1.5", "FROM_HOST": "here", "D": ""}),
        ("env_file: web.env\nenvironment: {B: own}", "environment", {"A": "file", "B": "own"}),
        ("env_file: [web.env]", "environment", {"A": "file", "B": "file"}),
        ("env_file:\n- path: nowhere.env\n  required: false", "environment", {}),
        ("user: 1000", "user", "1000"),
        ("user: 'me:us'", "user", "me:us"),
        ("working_dir: /app", "working_dir", "/app"),
        ("init: true", "init", True),
        ("init: 'yes'", "init", True),
        ("hostname: box", "hostname", "box"),
        ("read_only: true", "read_only", True),
        ("tty: true", "tty", True),
        ("stdin_open: true", "stdin_open", True),
        ("cpus: 0.5", "cpus", 0.5),
        ("cpus: '2'", "cpus", 2.0),
        ("mem_limit: 512m", "mem_limit", 512 * 1024**2),
        ("pids_limit: 100", "pids_limit", 100),
        ("deploy: {resources: {limits: {cpus: '1.5', memory: 1g, pids: 9}}}", "cpus", 1.5),
        ("deploy: {resources: {limits: {cpus: '1.5', memory: 1g, pids: 9}}}", "mem_limit", 1024**3),
        ("deploy: {resources: {limits: {cpus: '1.5', memory: 1g, pids: 9}}}", "pids_limit", 9),
        ("mem_limit: 1m\ndeploy: {resources: {limits: {memory: 1g}}}", "mem_limit", 1024**2),
        ("deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2}]}}}", "gpus", 2),
        ("deploy: {resources: {reservations: {devices: [{count: all, capabilities: [gpu]}]}}}", "gpus", -1),
        ("gpus: all", "gpus", -1),
        ("shm_size: 1gb", "shm_size", 1024**3),
        ("ulimits: {stack: -1, nofile: {soft: 10, hard: 20}}", "ulimits", {"stack": (-1, -1), "nofile": (10, 20)}),
        ("cap_add: [SYS_PTRACE, cap_net_admin]", "cap_add", ("SYS_PTRACE", "NET_ADMIN")),
        ("cap_drop: [ALL]", "cap_drop", ("ALL",)),
        ("security_opt: ['no-new-privileges:true']", "security_opt", ("no-new-privileges:true",)),
        ("sysctls: {net.core.somaxconn: 1024}", "sysctls", {"net.core.somaxconn": "1024"}),
        ("sysctls: ['a.b=1']", "sysctls", {"a.b": "1"}),
        ("dns: 1.1.1.1", "dns", ("1.1.1.1",)),
        ("group_add: [7, docker]", "group_add", ("7", "docker")),
        ("extra_hosts: ['host:127.0.0.1', 'gate=host-gateway', 'six:[::1]']", "extra_hosts",
         {"host": "127.0.0.1", "gate": "host-gateway", "six": "::1"}),
        ("extra_hosts: {host: 10.0.0.1}", "extra_hosts", {"host": "10.0.0.1"}),
        ("labels: {a: 1}", "labels", {"a": "1"}),
        ("platform: linux/amd64", "platform", "linux/amd64"),
        ("runtime: runsc", "runtime", "runsc"),
        ("restart: on-failure", "restart", "on-failure"),
        ("restart: 'no'", "restart", "no"),
        ("stop_grace_period: 1m30s", "stop_grace_period", 90.0),
        ("stop_signal: SIGINT", "stop_signal", "SIGINT"),
        ("x-default: true", "x_default", True),
        ("x-local: true", "x_local", True),
        ("network_mode: none", "network_mode", "none"),
        ("network_mode: 'service:db'", "network_mode", "service:db"),
        ("networks: [inner]", "networks", {"inner": ()}),
        ("networks: {inner: {aliases: [www, w]}}", "networks", {"inner": ("www", "w")}),
        ("networks: {inner: {ipv4_address: 10.9.0.5}}", "addresses", {"inner": "10.9.0.5"}),
        ("networks: [inner]\ncontainer_name: shop", "networks", {"inner": ("shop",)}),
        ("depends_on: [db]", "depends_on", {"db": "service_started"}),
        ("depends_on: {db: {condition: service_healthy}}", "depends_on", {"db": "service_healthy"}),
        ("depends_on: {db: {condition: service_completed_successfully}}", "depends_on",
         {"db": "service_completed_successfully"}),
        ("healthcheck: {test: curl -f localhost || exit 1}", "healthcheck",
         HealthSpec(("CMD-SHELL", "curl -f localhost || exit 1"))),
        ("healthcheck:\n  test: [CMD, true]\n  interval: 5s\n  timeout: 500ms\n  retries: 5\n  start_period: 1m",
         "healthcheck", HealthSpec(("CMD", "true"), 5.0, 0.5, 60.0, 5)),
        ("healthcheck: {test: [CMD-SHELL, 'a b']}", "healthcheck", HealthSpec(("CMD-SHELL", "a b"))),
        ("healthcheck: {test: [NONE]}", "healthcheck", HealthSpec(("NONE",))),
        ("healthcheck: {disable: true}", "healthcheck", HealthSpec(("NONE",))),
        ("volumes: ['store:/data']", "volumes", (MountSpec("volume", "/data", "store"),)),
        ("volumes: ['/scratch']", "volumes", (MountSpec("volume", "/scratch"),)),
        ("volumes: ['store:/data:ro']", "volumes", (MountSpec("volume", "/data", "store", read_only=True),)),
        ("volumes: [{type: volume, source: store, target: /data, read_only: true}]", "volumes",
         (MountSpec("volume", "/data", "store", read_only=True),)),
        ("volumes: [{type: tmpfs, target: /fast, tmpfs: {size: 1m}}]", "volumes",
         (MountSpec("tmpfs", "/fast", size=1024**2),)),
        ("tmpfs: /run", "volumes", (MountSpec("tmpfs", "/run"),)),
        ("tmpfs: ['/run:size=64m,mode=1777']", "volumes", (MountSpec("tmpfs", "/run", size=64 * 1024**2),)),
        ("ports: ['80', 8080]", "ports", (PortSpec("80/tcp"), PortSpec("8080/tcp"))),
        ("ports: [22:22]", "ports", (PortSpec("22/tcp", 22),)),
        ("ports: ['0:80']", "ports", (PortSpec("80/tcp"),)),
        ("ports: ['0.0.0.0:53:53/udp']", "ports", (PortSpec("53/udp", 53, "0.0.0.0"),)),
        ("ports: ['9000-9001:80-81']", "ports", (PortSpec("80/tcp", 9000), PortSpec("81/tcp", 9001))),
        ("ports: [{target: 80, published: '8080', protocol: udp}]", "ports", (PortSpec("80/udp", 8080),)),
        ("expose: [80]\nlogging: {driver: none}\npull_policy: always", "environment", {}),
    ],
)  # fmt: skip
def test_a_key_becomes_a_field(service: Callable[..., ServiceSpec], lines: str, field: str, expected: Any) -> None:
    assert getattr(service(lines), field) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("build: app", BuildSpec(Path("app"))),
        ("build: {context: ./app, dockerfile: dev.Dockerfile}", BuildSpec(Path("app"), "dev.Dockerfile")),
        ("build: {dockerfile: app/Dockerfile}", BuildSpec(Path(), "app/Dockerfile")),
        ("build: {context: app, target: dev, args: {A: 1}}", BuildSpec(Path("app"), args={"A": "1"}, target="dev")),
        ("build: {context: app, args: [A=1, FROM_HOST]}", BuildSpec(Path("app"), args={"A": "1", "FROM_HOST": "here"})),
        ("build: {dockerfile_inline: 'FROM scratch'}", BuildSpec(Path(), dockerfile_inline="FROM scratch")),
    ],
)
def test_a_build_is_of_a_folder_of_the_file(
    service: Callable[..., ServiceSpec], folder: Path, lines: str, expected: BuildSpec
) -> None:
    build = service(lines, image="").build
    assert build is not None and build.context == folder / expected.context
    for field in ("dockerfile", "dockerfile_inline", "args", "target"):
        assert getattr(build, field) == getattr(expected, field)


def test_a_bind_is_a_path_of_this_machine(service: Callable[..., ServiceSpec], folder: Path) -> None:
    assert service("volumes: ['./data:/data:ro']").volumes == (
        MountSpec("bind", "/data", str(folder / "data"), read_only=True),
    )
    assert service("volumes: [{type: bind, source: data, target: /data}]").volumes == (
        MountSpec("bind", "/data", str(folder / "data")),
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("mem_limit: lots", "compose.yaml:4: services.web.mem_limit: 'lots' is no size"),
        ("cpus: 0", "compose.yaml:4: services.web.cpus: must be more than 0"),
        ("cpus: many", "services.web.cpus: must be a number, not 'many'"),
        ("pids_limit: 1.5", "services.web.pids_limit: must be a whole number, not 1.5"),
        ("init: perhaps", "services.web.init: must be true or false, not 'perhaps'"),
        ("init: [true]", "services.web.init: must be true or false, not a list"),
        ("command: {a: b}", "services.web.command: must be a list, not a mapping"),
        ("command: sh -c 'a", 'services.web.command: "sh -c \'a" is no command line: no closing quotation'),
        ("working_dir: [a]", "services.web.working_dir: must be a text, not a list"),
        ("environment: 5", "services.web.environment: must be a list, not 5"),
        ("environment: [=1]", "services.web.environment[0]: '' is no name of a variable"),
        ("env_file: nowhere.env", "services.web.env_file: there is no such file:"),
        ("volumes: ['nowhere:/x']", "services.web.volumes: the file has no volume 'nowhere' under its volumes"),
        ("volumes: ['./nowhere:/x']", "services.web.volumes[0]: there is no file or folder"),
        ("volumes: ['a:b:c:d']", "is not of the form [SOURCE:]TARGET[:MODE]"),
        ("volumes: ['store:data']", "the target 'data' must be an absolute path in the container"),
        ("volumes: [{type: npipe, target: /x}]", "services.web.volumes[0].type: 'npipe' is not one of"),
        ("networks: [outer]", "services.web.networks: the file has no network 'outer' under its networks"),
        ("networks: [inner]\nnetwork_mode: none", "a service has networks or a network_mode, not both"),
        ("ports: ['80:x']", "is not of the form [[ADDRESS:]HOST_PORT:]PORT[/PROTOCOL]"),
        ("ports: ['1-2:80']", "the ranges of ports must be of the same length"),
        ("ports: ['99999']", "a port is at most 65535"),
        ("depends_on: [nobody]", "services.web: it depends on a service 'nobody'"),
        ("depends_on: {db: {condition: ready}}", "services.web.depends_on.db.condition: 'ready' is not one of"),
        ("depends_on: [web]", "services wait for each other: web -> web"),
        ("healthcheck: {test: [curl, x]}", "a list must be [CMD, program, argument, ...]"),
        ("healthcheck: {interval: soon}", "services.web.healthcheck.interval: 'soon' is no duration"),
        ("ulimits: {nofile: {soft: 1}}", "services.web.ulimits.nofile: needs soft and hard"),
        ("extra_hosts: [alone]", "'alone' is not of the form NAME:ADDRESS"),
        ("build: nowhere", "services.web.build: the build context is no folder:"),
        ("build: data", "services.web.build: there is no Dockerfile"),
        ("build: {context: app, dockerfile: no}", "services.web.build.dockerfile: there is no Dockerfile"),
        ("build: 'https://example.org/x.git'", "the build context must be a folder of this machine"),
        ("user: $NOBODY", "services.web.user: the variable NOBODY is not set"),
        ("user: '5$'", "a `$` itself is written `$$`"),
        ("image: two", "the key 'image' stands twice in one mapping"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(service: Callable[..., ServiceSpec], lines: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        service(lines)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "lines",
    [
        "develop: {}",
        "extends: {service: db}",
        "secrets: [a]",
        "colour: blue",
        "scale: 2",
        "deploy: {replicas: 3}",
        "deploy: {colour: blue}",
        "network_mode: 'container:abc'",
        "depends_on: {db: {condition: service_started, required: false}}",
        "healthcheck: {colour: blue}",
        "build: {context: app, secrets: [a]}",
    ],
)
def test_what_is_not_understood_is_named(service: Callable[..., ServiceSpec], lines: str) -> None:
    with pytest.raises(UnsupportedKeyError, match=r"compose\.yaml:4: services\.web\."):
        service(lines)


@pytest.mark.parametrize(
    ("lines", "risk"),
    [
        ("privileged: true", "privileged"),
        ("cap_add: [SYS_ADMIN]", "privileged"),
        ("cap_add: [ALL]", "privileged"),
        ("network_mode: host", "host-network"),
        ("pid: host", "host-processes"),
        ("ipc: host", "host-processes"),
        ("devices: ['/dev/kvm']", "devices"),
        ("volumes: ['/etc:/host']", "host-files"),
        ("volumes: ['/:/host:ro']", "host-files"),
        ("volumes: ['/etc/ssl:/host']", "host-files"),
    ],
)
def test_what_hands_over_the_machine_is_refused_unless_allowed(
    service: Callable[..., ServiceSpec], lines: str, risk: str
) -> None:
    with pytest.raises(UsageError, match=f"PROCTOR_DOCKER_ALLOW={risk}"):
        service(lines, allowed=tuple(set(RISKS) - {risk}))
    assert service(lines, allowed=(risk,)).name == "web"


def test_the_sockets_of_engines_are_not_mounted(service: Callable[..., ServiceSpec], folder: Path) -> None:
    (folder / "docker.sock").touch()
    (folder / "innocent").symlink_to(folder / "docker.sock")
    for name in ("docker.sock", "innocent"):
        with pytest.raises(UsageError, match="the engine's own socket"):
            service(f"volumes: ['./{name}:/x']")


def test_a_folder_with_the_socket_of_an_engine_is_not_mounted(
    service: Callable[..., ServiceSpec], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "app" / "inner").mkdir()
    (folder / "app" / "inner" / "any.name").touch()
    assert service("volumes: ['./app:/x']").volumes
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/app/inner/any.name")
    (folder / "data" / "podman.sock").touch()
    for name in ("app", "app/inner", "app/inner/any.name", "data"):
        with pytest.raises(UsageError, match=r"the engine's own socket.*PROCTOR_DOCKER_ALLOW=docker-socket"):
            service(f"volumes: ['./{name}:/x:ro']")


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("options", "risk"),
    [
        ("{type: none, o: bind, device: /etc}", "host-files"),
        ("{type: none, o: 'ro,rbind', device: /}", "host-files"),
        ("[o=bind, device=./data/docker.sock]", "docker-socket"),
        ("{type: ext4, device: /dev/sda1}", "host-files"),
        ("{type: overlay, o: 'lowerdir=/etc', device: overlay}", "host-files"),
    ],
)
def test_a_volume_is_no_way_around(folder: Path, options: str, risk: str, lenient: bool) -> None:
    (folder / "data" / "docker.sock").touch()
    file = folder / "compose.yaml"
    text = "services: {web: {image: busybox, volumes: ['d:/x']}}\nvolumes:\n  d:\n    driver_opts: "
    file.write_text(text + options)
    with pytest.raises(UsageError, match=rf"compose\.yaml:4: volumes\.d\.driver_opts: .*PROCTOR_DOCKER_ALLOW={risk}"):
        read_compose_file(file, Given(HOST.get, lenient=lenient))
    assert read_compose_file(file, Given(HOST.get, allowed=(risk,), lenient=lenient)).volumes
    file.write_text(text + "{type: tmpfs, device: tmpfs, o: size=1m}")
    assert read_compose_file(file, Given(HOST.get, lenient=lenient)).volumes
    file.write_text(text + f"{{type: none, o: bind, device: {folder}/app}}")
    [told] = project_risks(read_compose_file(file, Given(HOST.get, lenient=lenient)))
    assert told == f"the volume 'd' is {folder}/app of this machine (mounted without ro)"
