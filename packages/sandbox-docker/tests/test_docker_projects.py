"""Samples of several services on a real engine: built images, start order, networks, volumes, limits, metadata."""

from __future__ import annotations

import json
import logging
import secrets
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from operator import methodcaller
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest
from docker.errors import ImageNotFound

from proctor.contracts import PrerequisiteError, SandboxBrokenError, SandboxEnvironment, UsageError
from proctor_sandbox_docker._context import BUILT
from proctor_sandbox_docker._driver import DockerDriver
from proctor_sandbox_docker._engine import Engine

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.usefixtures("engine_address")]

Sandboxes: TypeAlias = dict[str, SandboxEnvironment]
GOES_ON = "command: tail -f /dev/null\n    stop_grace_period: 0s"


@pytest.fixture
def anyio_backend() -> str:
    """One, the stricter in cancelling: what differs here is what the engine is asked for."""
    return "trio"


@pytest.fixture
async def driver(engine_address: Any) -> AsyncIterator[DockerDriver]:
    """A driver that has taken away all samples at the end; the images that were built for them go, too."""
    made = DockerDriver(Engine(engine_address))
    yield made
    assert not made._made
    await remove_built(made)


async def remove_built(driver: DockerDriver) -> None:
    for image in driver.images._ready.values():
        if image.name.startswith(BUILT):
            with suppress(ImageNotFound):
                await driver.engine.call("remove", methodcaller("remove_image", image.name))


@asynccontextmanager
async def sample(driver: DockerDriver, config: Any, **metadata: Any) -> AsyncIterator[Sandboxes]:
    await driver.task_init("quiz", config)
    environments = await driver.sample_init("quiz", config, metadata)
    try:
        yield environments
    finally:
        await driver.sample_cleanup(environments, False)


async def output(sandbox: SandboxEnvironment, line: str) -> str:
    result = await sandbox.exec(["sh", "-c", line], timeout=60)
    assert result.success, result
    return result.stdout


async def inspected(driver: DockerDriver, sandbox: SandboxEnvironment) -> Any:
    """What the engine says of the sandbox's container."""
    id = sandbox.container.id  # type: ignore[attr-defined]  # the driver's own kind
    return await driver.engine.call("inspect", lambda client: client.inspect_container(id))


async def left(driver: DockerDriver, project: str) -> dict[str, int]:
    """What the engine still has of a sample."""
    wanted = {"label": f"proctor.project={project}"}
    containers, networks, volumes = await driver.engine.call(
        "list",
        lambda client: (
            client.containers(all=True, filters=wanted),
            client.networks(filters=wanted),
            client.volumes(filters=wanted)["Volumes"] or [],
        ),
    )
    return {"containers": len(containers), "networks": len(networks), "volumes": len(volumes)}


NOTHING = {"containers": 0, "networks": 0, "volumes": 0}


@pytest.fixture
def compose(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        (tmp_path / "compose.yaml").write_text(textwrap.dedent(text).replace("GOES_ON", GOES_ON))
        return str(tmp_path / "compose.yaml")

    return write


async def test_an_image_is_built_from_its_folder_and_once(
    driver: DockerDriver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a folder with files that are to go in, and one that is not
    caplog.set_level(logging.INFO, "proctor.sandbox")
    mark = secrets.token_hex(4)
    (tmp_path / "Dockerfile").write_text(
        "ARG BASE=proctor-busybox:latest\nFROM ${BASE}\nWORKDIR /src\nCOPY . .\nRUN ls > /listing && chmod 755 run\n"
    )
    (tmp_path / "run").write_text(f"#!/bin/sh\necho {mark}\n")
    (tmp_path / "secret").write_text("x")
    (tmp_path / ".dockerignore").write_text("# not these\nsecret\n")
    # When two samples are started from it, and one of another run
    async with sample(driver, str(tmp_path / "Dockerfile")) as first, sample(driver, str(tmp_path)) as second:
        # Then commands start in the image's own folder, and what is ignored was not sent
        assert await output(first["default"], "./run; pwd") == f"{mark}\n/src\n"
        assert "secret" not in await output(second["default"], "cat /listing")
        [container, other] = [await inspected(driver, each["default"]) for each in (first, second)]
        assert container["Image"] == other["Image"] and container["Config"]["Image"].startswith("proctor-built:")
    again = DockerDriver(driver.engine)
    async with sample(again, str(tmp_path)):
        pass
    said = [record.getMessage() for record in caplog.records if "building" in record.getMessage()]
    assert len(said) == 2 and said[0].endswith("...") and "done after" in said[1]
    # And when a file changes, it is another image
    (tmp_path / "run").write_text("#!/bin/sh\necho changed\n")
    third = DockerDriver(driver.engine)
    async with sample(third, str(tmp_path)) as changed:
        assert await output(changed["default"], "./run") == "changed\n"
    await remove_built(third)


async def test_a_build_that_fails_shows_what_it_said(driver: DockerDriver, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM proctor-busybox\nRUN echo what is wrong >&2; exit 7\n")
    with pytest.raises(PrerequisiteError) as caught:
        await driver.task_init("quiz", str(tmp_path))
    assert "what is wrong" in str(caught.value) and "non-zero code: 7" in str(caught.value)


async def test_a_dockerfile_for_buildkit_says_so(driver: DockerDriver, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM proctor-busybox\nRUN --mount=type=cache,target=/x true\n")
    with pytest.raises(PrerequisiteError, match="docker buildx build --load"):
        await driver.task_init("quiz", str(tmp_path))


async def test_an_image_that_is_made_here_is_never_pulled(driver: DockerDriver, compose: Callable[[str], str]) -> None:
    config = compose("services: {a: {image: never-there, x-local: true}}")
    with pytest.raises(PrerequisiteError, match=r"x-local says that it is not to be pulled: build it \(docker build"):
        await driver.task_init("quiz", config)


async def test_services_start_in_order_and_find_each_other(driver: DockerDriver, compose: Callable[[str], str]) -> None:
    # Given a service that waits for one that takes a while to be healthy, and for one that does its work and ends
    config = compose("""
        services:
          default:
            image: proctor-busybox
            GOES_ON
            volumes: ["store:/store"]
            depends_on:
              db: {condition: service_healthy}
              job: {condition: service_completed_successfully}
          job:
            image: proctor-busybox
            command: sh -c 'echo done > /store/job'
            volumes: ["store:/store"]
          db:
            image: proctor-busybox
            command: sh -c 'sleep 1; echo data > /index.html; exec httpd -f -h / -p 80'
            stop_grace_period: 0s
            healthcheck: {test: [CMD, wget, -q, -O, "-", localhost], interval: 200ms, retries: 100}
            networks: {default: {aliases: [shop]}}
        volumes: {store: }
    """)
    # When
    async with sample(driver, config) as environments:
        project = environments["default"].project  # type: ignore[attr-defined]
        # Then the default one comes first, and what has ended is no sandbox
        assert list(environments) == ["default", "db"]
        assert (
            await output(environments["default"], "cat /store/job; wget -qO- db; wget -qO- shop")
            == "done\ndata\ndata\n"
        )
        assert await left(driver, project) == {"containers": 3, "networks": 1, "volumes": 1}
    assert await left(driver, project) == NOTHING


async def test_samples_do_not_see_each_other(driver: DockerDriver, compose: Callable[[str], str]) -> None:
    # Given two samples of a file with a client and a server
    config = compose("""
        services:
          default: {image: proctor-busybox, command: tail -f /dev/null, stop_grace_period: 0s}
          web: {image: proctor-busybox, command: httpd -f -h /etc -p 80, stop_grace_period: 0s}
    """)
    reach = "timeout 3 wget -q -O /dev/null {}/passwd && echo yes || echo no"
    async with sample(driver, config) as one, sample(driver, config) as other:
        [network] = (await inspected(driver, other["web"]))["NetworkSettings"]["Networks"].values()
        # When each client looks for its own server, and one for the other's by its address
        answers = [await output(each["default"], reach.format("web")) for each in (one, other)]
        across = [await output(each["default"], reach.format(network["IPAddress"])) for each in (other, one)]
    # Then only their own answer
    assert (answers, across) == (["yes\n", "yes\n"], ["yes\n", "no\n"])


async def test_networks_none_and_internal(driver: DockerDriver, compose: Callable[[str], str]) -> None:
    config = compose("""
        services:
          default: {image: proctor-busybox, command: tail -f /dev/null, networks: [inner], stop_grace_period: 0s}
          apart: {image: proctor-busybox, command: tail -f /dev/null, network_mode: none, stop_grace_period: 0s}
          beside: {image: proctor-busybox, command: tail -f /dev/null, network_mode: "service:default"}
        networks: {inner: {internal: true}}
    """)
    async with sample(driver, config) as environments:
        [network] = (await inspected(driver, environments["default"]))["NetworkSettings"]["Networks"].values()
        found = await driver.engine.call("look", lambda client: client.inspect_network(network["NetworkID"]))
        assert found["Internal"]
        # A container of no network has no interface but the loopback
        assert (await output(environments["apart"], "ls /sys/class/net")).split() == ["lo"]
        addresses = [await output(environments[name], "ip addr show eth0") for name in ("default", "beside")]
        assert addresses[0] == addresses[1]


async def test_limits_and_settings_are_those_of_the_file(driver: DockerDriver, compose: Callable[[str], str]) -> None:
    config = compose("""
        services:
          a:
            image: proctor-busybox
            GOES_ON
            cpus: 0.5
            mem_limit: 64m
            pids_limit: 50
            shm_size: 8m
            ulimits: {nofile: {soft: 100, hard: 200}}
            user: nobody
            working_dir: /tmp
            hostname: box
            read_only: true
            tmpfs: ["/fast:size=1m"]
            environment: {A: "1"}
            cap_drop: [ALL]
            extra_hosts: ["there:10.9.8.7"]
            ports: ["8080"]
            init: true
            labels: {mine: "yes"}
    """)
    async with sample(driver, config) as environments:
        host = (found := await inspected(driver, environments["a"]))["HostConfig"]
        assert (host["NanoCpus"], host["Memory"], host["PidsLimit"]) == (5 * 10**8, 64 * 1024**2, 50)
        assert (host["ShmSize"], host["Init"], host["ReadonlyRootfs"]) == (8 * 1024**2, True, True)
        assert host["Ulimits"] == [{"Name": "nofile", "Soft": 100, "Hard": 200}]
        assert "ALL" in host["CapDrop"] and found["Config"]["Labels"]["mine"] == "yes"
        assert await output(environments["a"], "id -un; pwd; hostname; echo $A") == "nobody\n/tmp\nbox\n1\n"
        assert "10.9.8.7" in await output(environments["a"], "grep there /etc/hosts")
        assert "size=1024k" in await output(environments["a"], "grep /fast /proc/mounts")
        ports = (await environments["a"].connection()).ports
        assert ports is not None and list(ports) == ["8080/tcp"]
        assert found["NetworkSettings"]["Ports"]["8080/tcp"][0]["HostIp"] == "127.0.0.1"


async def test_metadata_of_the_sample_are_filled_in(driver: DockerDriver, compose: Callable[[str], str]) -> None:
    # Given a file whose image, build argument and memory hang on the sample
    config = compose("""
        services:
          side: {image: "${SAMPLE_METADATA_IMAGE}", command: tail -f /dev/null, stop_grace_period: 0s}
          main:
            x-default: true
            build:
              context: .
              dockerfile_inline: "FROM proctor-busybox\\nARG WORD\\nRUN echo $$WORD > /word\\n"
              args: {WORD: "${SAMPLE_METADATA_SECRET_WORD-nothing}"}
            GOES_ON
            mem_limit: ${SAMPLE_METADATA_MEMORY-32m}
    """)
    # When it is started for one that has them
    metadata = {"image": "proctor-busybox", "secret word": "xyz", "memory": "48m"}
    async with sample(driver, config, **metadata) as environments:
        # Then
        assert list(environments) == ["main", "side"]
        assert await output(environments["main"], "cat /word") == "xyz\n"
        assert (await inspected(driver, environments["main"]))["HostConfig"]["Memory"] == 48 * 1024**2
    # And a sample without the one that has no default is refused by the variable's name
    with pytest.raises(UsageError, match=r"services\.side\.image: the variable SAMPLE_METADATA_IMAGE is not set"):
        await driver.sample_init("quiz", config, {})


@pytest.mark.parametrize(
    ("services", "said"),
    [
        ("{a: {image: proctor-busybox, command: sh -c 'echo why; exit 3'}}", "exited (3); last lines of its log: why"),
        ("{a: {image: proctor-busybox, command: 'true'}}", "exited (0)"),
        ("{a: {image: proctor-busybox, init: false, command: [no-such-command]}}", "'a' did not start"),
        ("{a: {image: proctor-busybox, command: sleep 60, healthcheck: *no}}",
         "is not healthy: its check ended with 1 and said 'no'"),
        ("{a: {image: proctor-busybox, command: sleep 60, depends_on: {b: {condition: service_healthy}}}, b: *b}",
         "'b' has no health check, nor has its image"),
        ("{a: {image: proctor-busybox, command: sleep 60, depends_on: *after}, c: *c}",
         "exited (9); last lines of its log: why"),
    ],
)  # fmt: skip
async def test_a_service_that_does_not_come_up_is_said_and_all_is_taken_away(
    driver: DockerDriver, compose: Callable[[str], str], services: str, said: str
) -> None:
    config = compose(f"""
        x-b: &b {{image: proctor-busybox, command: sleep 60, stop_grace_period: 0s}}
        x-no: &no {{test: echo no; false, retries: 1, interval: 9ms}}
        x-after: &after {{c: {{condition: service_completed_successfully}}}}
        x-c: &c {{image: proctor-busybox, command: sh -c 'echo why; exit 9'}}
        services: {services}
    """)
    await driver.task_init("quiz", config)
    with pytest.raises((SandboxBrokenError, UsageError)) as caught:
        async with sample(driver, config) as environments:
            await environments["a"].exec(["sleep", "5"])  # it may end only after it was seen to run
    assert said in str(caught.value)
    assert not driver._made


async def test_an_image_that_was_removed_meanwhile_is_had_again(driver: DockerDriver, tmp_path: Path) -> None:
    # Given an image that a sample was started from
    (tmp_path / "Dockerfile").write_text(f"FROM proctor-busybox\nRUN echo {secrets.token_hex(4)} > /x\n")
    async with sample(driver, str(tmp_path)) as environments:
        name = (await inspected(driver, environments["default"]))["Config"]["Image"]
    # When somebody removes it
    await driver.engine.call("remove", lambda client: client.remove_image(name))
    # Then the next sample gets it all the same
    async with sample(driver, str(tmp_path)) as environments:
        assert await output(environments["default"], "cat /x")


async def test_what_is_external_must_be_there_and_stays(driver: DockerDriver, compose: Callable[[str], str]) -> None:
    name = f"proctor-test-{secrets.token_hex(4)}"
    config = compose(f"""
        services:
          a: {{image: proctor-busybox, command: tail -f /dev/null, stop_grace_period: 0s, volumes: ["v:/v"]}}
        volumes: {{v: {{external: true, name: {name}}}}}
    """)
    with pytest.raises(UsageError, match=f"docker volume create {name}"):
        await driver.task_init("quiz", config)
        await driver.sample_init("quiz", config, {})
    await driver.engine.call("make", lambda client: client.create_volume(name))
    try:
        for line in ("echo kept > /v/x", "cat /v/x"):
            async with sample(driver, config) as environments:
                await output(environments["a"], line)
    finally:
        await driver.engine.call("remove", lambda client: client.remove_volume(name))


async def test_ten_samples_of_two_services_at_once_leave_nothing(
    driver: DockerDriver, compose: Callable[[str], str]
) -> None:
    # Given a file of two services, one of which waits for the other
    config = compose("""
        services:
          default:
            image: proctor-busybox
            GOES_ON
            depends_on: {db: {condition: service_healthy}}
          db:
            image: proctor-busybox
            command: sh -c 'hostname > /index.html; exec httpd -f -h / -p 80'
            stop_grace_period: 0s
            healthcheck: {test: wget -qO- localhost, interval: 500ms, retries: 100}
            volumes: ["data:/data"]
        volumes: {data: }
    """)
    await driver.task_init("quiz", config)
    projects: list[str] = []
    answers: list[str] = []

    async def one() -> None:
        environments = await driver.sample_init("quiz", config, {})
        projects.append(environments["default"].project)  # type: ignore[attr-defined]
        answers.append(await output(environments["default"], "wget -qO- db"))
        await driver.sample_cleanup(environments, False)

    # When ten are up at once
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(one)
    # Then each has seen its own service, and nothing is left of any
    assert len(set(answers)) == len(set(projects)) == 10
    assert [await left(driver, project) for project in projects] == [NOTHING] * 10


async def test_a_cancelled_start_leaves_nothing(driver: DockerDriver, compose: Callable[[str], str]) -> None:
    # Given a service that is never healthy
    config = compose("""
        services:
          a: {image: proctor-busybox, command: sleep 60, depends_on: {b: {condition: service_healthy}}}
          b:
            image: proctor-busybox
            command: sleep 60
            healthcheck: {test: "false", interval: 200ms, retries: 10000}
    """)
    await driver.task_init("quiz", config)
    # When the sample is cancelled while its start waits
    async with anyio.create_task_group() as group:
        group.start_soon(driver.sample_init, "quiz", config, {})
        with anyio.fail_after(60):
            while not (driver._made and next(iter(driver._made.values())).containers):  # noqa: ASYNC110  # polled
                await anyio.sleep(0.05)
        [project] = driver._made
        group.cancel_scope.cancel()
    # Then
    assert await left(driver, project) == NOTHING


async def test_a_dict_is_a_project_too(driver: DockerDriver) -> None:
    config = {"services": {"box": {"image": "proctor-busybox", "command": ["tail", "-f", "/dev/null"]}}}
    async with sample(driver, json.loads(json.dumps(config))) as environments:
        assert list(environments) == ["box"]
