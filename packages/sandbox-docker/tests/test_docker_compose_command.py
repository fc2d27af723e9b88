"""Compose files that are not understood here, run by `docker compose`: the real one where it is, and a small one."""

from __future__ import annotations

import logging
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from proctor.contracts import SandboxBrokenError, UsageError
from proctor_sandbox_docker._compose_command import find_compose
from proctor_sandbox_docker._driver import DockerDriver
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker.compose import UnsupportedKeyError

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.usefixtures("engine_address")]

FILE = """\
services:
  side:
    image: proctor-busybox
    command: tail -f /dev/null
    environment: ["WORD=${SAMPLE_METADATA_WORD-none}"]
    links: [main]
    volumes: ["store:/store"]
  main:
    x-default: true
    image: proctor-busybox
    command: tail -f /dev/null
volumes: {store: }
"""

# What of compose these files need, by the engine's command line; it notes how it was called.
SMALL = """\
#!{python}
import json, os, re, subprocess, sys
import yaml

arguments = sys.argv[1:]
with open({calls!r}, "a") as file:
    file.write(json.dumps(arguments) + "\\n")
files = [arguments[i + 1] for i, word in enumerate(arguments) if word == "-f"]
project = arguments[arguments.index("-p") + 1]
text = open(files[0]).read()
text = re.sub(r"\\$\\{{(\\w+)-(\\w*)\\}}", lambda match: os.environ.get(match[1], match[2]), text)
config = yaml.safe_load(text)
labels = yaml.safe_load(open(files[1]).read())["services"] if len(files) > 1 else {{}}
docker = lambda *words: subprocess.run(["docker", *words], check=True, stdout=subprocess.DEVNULL)
mark = "com.docker.compose.project=" + project
if "config" in arguments:
    print(yaml.safe_dump(config))
elif "up" in arguments:
    for name, service in config["services"].items():
        if service["image"] == "broken":
            sys.exit("broken: no such image")
        words = ["--label=" + mark, "--label=com.docker.compose.service=" + name]
        words += ["--label=" + key + "=" + value for key, value in labels[name]["labels"].items()]
        words += ["--env=" + item for item in service.get("environment", [])]
        docker("run", "-d", "--network=none", *words, service["image"], *service["command"].split())
elif "down" in arguments:
    listed = ["docker", "ps", "-aq", "--filter", "label=" + mark]
    found = subprocess.run(listed, check=True, capture_output=True, text=True)
    if found.stdout.split():
        docker("rm", "-f", *found.stdout.split())
"""


@pytest.fixture(params=["small", *(["real"] if find_compose() else [])])
def command(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which `docker-compose` is found; of the small one `calls` notes the calls."""
    if request.param == "small":
        folder = tmp_path / "bin"
        folder.mkdir()
        script = folder / "docker-compose"
        script.write_text(SMALL.format(python=sys.executable, calls=str(tmp_path / "calls")))
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setattr("proctor_sandbox_docker._driver.find_compose", lambda: ("docker-compose",))
    return str(request.param)


@pytest.fixture
def driver(engine_address: Any) -> DockerDriver:
    return DockerDriver(Engine(engine_address))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "compose.yaml"
    path.write_text(FILE)
    return path


async def test_a_file_that_is_not_understood_is_run_as_it_is(
    driver: DockerDriver, file: Path, command: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a compose that is there, and a file with a key that is not known here
    # When it is started for a sample
    await driver.check(str(file))
    await driver.task_init("quiz", str(file))
    environments = await driver.sample_init("quiz", str(file), {"word": "xyz"})
    try:
        # Then it is said why, services are there by name with the default one first, with our labels and the metadata
        assert (
            f"{file}:6: services.side.links: this key" in caplog.text and "the file is run as it is by" in caplog.text
        )
        assert list(environments) == ["main", "side"]
        assert (await environments["side"].exec(["sh", "-c", "echo $WORD"])).stdout == "xyz\n"
        names = {environment.container.name for environment in environments.values()}  # type: ignore[attr-defined]
        assert names <= {each.id for each in await driver.sandboxes() if each.owner}
    finally:
        await driver.sample_cleanup(environments, False)
    # And all of it is gone afterwards
    project = environments["main"].project  # type: ignore[attr-defined]
    assert not [each.id for each in await driver.sandboxes() if project in each.id or each.id in names]


async def test_how_compose_is_called(driver: DockerDriver, file: Path, command: str, tmp_path: Path) -> None:
    if command == "real":
        return
    environments = await driver.sample_init("quiz", str(file), {})
    await driver.sample_cleanup(environments, False)
    project = f"proctor-{environments['main'].project}"  # type: ignore[attr-defined]
    calls = [line.strip() for line in (tmp_path / "calls").read_text().splitlines()]
    [up] = [line for line in calls if '"up"' in line]
    [down] = [line for line in calls if '"down"' in line]
    assert f'["-p", "{project}", "-f", "{file}", "-f", "' in up and up.endswith('"up", "-d"]')
    assert down.endswith('"down", "--volumes", "--rmi", "local", "-t", "1"]')


async def test_what_compose_says_of_a_failure_is_shown(driver: DockerDriver, file: Path, command: str) -> None:
    if command == "real":
        return
    file.write_text(FILE.replace("image: proctor-busybox", "image: broken"))
    with pytest.raises(
        SandboxBrokenError, match=r"`docker-compose up -d` failed with exit code 1: broken: no such image"
    ):
        await driver.sample_init("quiz", str(file), {})
    assert not driver._made


async def test_compose_is_no_way_around_what_is_dangerous(driver: DockerDriver, file: Path, command: str) -> None:
    file.write_text(FILE.replace("links: [main]", "links: [main]\n    privileged: true"))
    with pytest.raises(UsageError, match="PROCTOR_DOCKER_ALLOW=privileged"):
        await driver.check(str(file))
    with pytest.raises(UsageError, match="PROCTOR_DOCKER_ALLOW=privileged"):
        await driver.sample_init("quiz", str(file), {})


async def test_without_compose_the_key_is_named_and_the_way_out(
    driver: DockerDriver, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor_sandbox_docker._driver.find_compose", lambda: None)
    with pytest.raises(UnsupportedKeyError) as caught:
        await driver.check(str(file))
    assert str(caught.value).startswith(f"{file}:6: services.side.links: this key is not supported here")
    assert "`docker compose` would run the file as it is: install it" in str(caught.value)


def test_the_plugin_goes_before_the_older_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def program(name: str, text: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{textwrap.dedent(text)}")
        (tmp_path / name).chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_compose() is None
    program("docker", "exit 1")
    assert find_compose() is None
    program("docker-compose", "exit 0")
    assert find_compose() == ("docker-compose",)
    program("docker", '[ "$1" = compose ]')
    assert find_compose() == ("docker", "compose")


@pytest.fixture(autouse=True)
def _log_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "proctor.sandbox")
