"""Which engine is taken, and how little a container may do."""

from __future__ import annotations

import gc
import hashlib
import json
import socket
from pathlib import Path

import pytest

from proctor.contracts import PrerequisiteError, UsageError
from proctor_sandbox_docker import _address
from proctor_sandbox_docker._address import find_address
from proctor_sandbox_docker._container import Place, container_config
from proctor_sandbox_docker._driver import DockerDriver
from proctor_sandbox_docker.compose import ServiceSpec


def context(folder: Path, name: str, host: str) -> None:
    """As `docker context create` writes it down."""
    meta = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": False}}}))


def test_docker_host_goes_before_the_context(tmp_path: Path) -> None:
    context(tmp_path, "far", "tcp://far:2375")
    env = {"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "far"}

    assert find_address(env).url == "tcp://far:2375"
    assert find_address({**env, "DOCKER_HOST": "unix:///near.sock"}).socket_path == "/near.sock"


def test_the_context_that_docker_context_use_named_is_taken(tmp_path: Path) -> None:
    context(tmp_path, "far", "tcp://far:2375")
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "far"}))

    found = find_address({"DOCKER_CONFIG": str(tmp_path)})

    assert (found.url, found.source, found.tls) == ("tcp://far:2375", "context far", False)


def test_a_context_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="docker context ls"):
        find_address({"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "gone"})


def test_tls_takes_the_files_beside_each_other(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / f"{name}.pem").touch()
    env = {"DOCKER_HOST": "tcp://far:2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(tmp_path)}

    found = find_address(env)

    assert found.tls and found.verify and found.ca == str(tmp_path / "ca.pem") and found.host_port == ("far", 2376)


def test_tls_without_files_is_an_error(tmp_path: Path) -> None:
    env = {"DOCKER_HOST": "tcp://far:2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(tmp_path)}

    with pytest.raises(UsageError, match=r"ca\.pem"):
        find_address(env)


def test_a_container_may_do_as_little_as_images_bear() -> None:
    host = container_config(ServiceSpec(name="default", image="image"), {}, Place())["HostConfig"]

    assert host["NetworkMode"] == "none"
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert {"NET_RAW", "MKNOD"} <= set(host["CapDrop"]) and host["CapAdd"] == []
    assert host["PidsLimit"] == 1024
    assert not {"Privileged", "Mounts", "Devices"} & set(host)


def test_a_capability_that_is_asked_for_is_not_dropped() -> None:
    service = ServiceSpec(name="default", image="image", cap_add=("CAP_NET_RAW",))

    host = container_config(service, {}, Place())["HostConfig"]

    assert "NET_RAW" not in host["CapDrop"] and "MKNOD" in host["CapDrop"]


def test_a_container_starts_in_a_folder_of_its_own_and_waits_for_commands() -> None:
    config = container_config(ServiceSpec(name="default", image="image", keep_alive=True), {"a": "b"}, Place())

    assert config["WorkingDir"] == "/workspace" and config["Labels"] == {"a": "b"}
    assert config["Entrypoint"][:2] == ["sh", "-c"] and config["Cmd"] == []


@pytest.mark.anyio
async def test_that_there_is_no_engine_is_another_thing_than_one_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a socket that nobody listens at, then it is no absence: a clean-up must not pass over it."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setattr(_address, "_usual_places", lambda env: [str(tmp_path / "none"), str(path)])
    before = _open_sockets()
    with pytest.raises(UsageError, match="no engine answers") as raised:
        await DockerDriver().sandboxes()
    assert not isinstance(raised.value, PrerequisiteError)
    assert _open_sockets() == before, "the SDK leaves one open that could not connect"

    path.unlink()
    with pytest.raises(PrerequisiteError, match="no container engine was found"):
        await DockerDriver().sandboxes()


def _open_sockets() -> set[int]:
    return {each.fileno() for each in gc.get_objects() if isinstance(each, socket.socket)} - {-1}
