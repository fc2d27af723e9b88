"""What may stand after ``docker:``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from proctor.contracts import UsageError
from proctor_sandbox_docker._config import DEFAULT_IMAGE, compose_file, metadata_variables, read
from proctor_sandbox_docker.compose import ServiceSpec

NOTHING: dict[str, str] = {}


def only(config: Any, metadata: dict[str, Any] | None = None, **environment: str) -> ServiceSpec:
    found = read(config, metadata, environment.get)
    assert len(found.services) == 1
    return found.services[0]


@pytest.mark.parametrize(
    "image",
    ["busybox", "python:3.12-bookworm", "ghcr.io/me/box:1", "localhost:5000/a/b@sha256:0123abcd", "x.y/z__a/b-c"],
)
def test_the_name_of_an_image(image: str) -> None:
    service = only(image)
    assert service.image == image and service.keep_alive and service.network_mode == "none" and service.init


def test_nothing_said_is_the_default_image() -> None:
    assert only(None).image == DEFAULT_IMAGE
    assert only(None, PROCTOR_DOCKER_IMAGE="mine").image == "mine"
    assert only("memory=1g", PROCTOR_DOCKER_IMAGE="mine").image == "mine"


def test_settings() -> None:
    service = only("image=a,memory=1g,cpus=1.5,network=bridge,pids=50,user=me,workdir=/w,init=false,command=sleep 9")
    assert (service.image, service.mem_limit, service.cpus, service.network_mode) == ("a", 1024**3, 1.5, "bridge")
    assert (service.pids_limit, service.user, service.working_dir, service.init) == (50, "me", "/w", False)
    assert service.command == ("sleep", "9") and not service.keep_alive


def test_settings_as_a_dict_may_be_lists_and_mappings() -> None:
    service = only({"image": "a", "memory": 1024, "environment": {"A": 1}, "command": ["x", "y"]})
    assert (service.mem_limit, service.environment, service.command) == (1024, {"A": "1"}, ("x", "y"))


def test_a_dockerfile_and_a_folder(tmp_path: Path) -> None:
    for name in ("Dockerfile", "agent.Dockerfile", "Dockerfile.agent"):
        (tmp_path / name).write_text("FROM scratch\n")
        service = only(str(tmp_path / name))
        assert service.build is not None and service.keep_alive
        assert (service.build.context, service.build.dockerfile) == (tmp_path, name)
    service = only(str(tmp_path))
    assert service.build is not None and service.build.dockerfile == "Dockerfile"
    assert compose_file(str(tmp_path)) is None
    (tmp_path / "compose.yaml").write_text("services: {a: {image: x}}")
    assert only(str(tmp_path)).name == "a" and compose_file(str(tmp_path)) == tmp_path / "compose.yaml"


def test_settings_change_the_default_service_of_a_compose_file(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("services: {a: {image: x, mem_limit: 1g}, default: {image: y, environment: {A: 1}}}")
    found = read(f"compose={file},memory=5m,network=none", None, NOTHING.get)
    assert found.service("default").mem_limit == 5 * 1024**2 and found.service("default").environment == {"A": "1"}
    assert found.service("default").network_mode == "none" and not found.service("default").networks
    assert found.service("a").mem_limit == 1024**3


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("nowhere.yaml", "there is no file"),
        ("./nowhere", "there is no file"),
        ("a.Dockerfile", "there is no file"),
        ("Not An Image", "is no name of an image"),
        ({"services": {"a": {"image": "Not An Image"}}}, "services.a.image: 'Not An Image' is no name of an image"),
        ("", "nothing is named"),
        (tempfile.gettempdir(), "is a folder without compose.yaml, compose.yml"),
        ("image=a,colour=blue", "there is no setting 'colour'"),
        ("image=a,image=b", "image stands twice"),
        ("image=a,blue", "'blue' in 'image=a,blue' is not of the form key=value"),
        ("image=a,dockerfile=b", "image and dockerfile both say what to run"),
        ("image=a,memory=lots", "sandbox docker: mem_limit: 'lots' is no size"),
        ("image=a,network=host", "PROCTOR_DOCKER_ALLOW=host-network"),
        (5, "must be a text or a dict, not int"),
        ({"image": "a", "depends_on": []}, "there is no setting 'depends_on'"),
    ],
)
def test_what_can_not_be_a_configuration(config: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(config, None, NOTHING.get)
    assert said in str(caught.value)


def test_what_is_allowed_is_said_outside_of_the_file() -> None:
    assert only("image=a,network=host", PROCTOR_DOCKER_ALLOW="host-network, privileged").network_mode == "host"
    with pytest.raises(UsageError, match="blue can't be allowed; known are privileged"):
        read(None, None, {"PROCTOR_DOCKER_ALLOW": "blue"}.get)


def test_the_metadata_of_a_sample_are_variables() -> None:
    # Names and values as Inspect AI 0.3.285 passes them to `docker compose`: upper case, `_` for a space, str().
    metadata = {
        "foo": "x y",
        "snake case": 3,
        "Foo-Bar": 2.50,
        "t": True,
        "none": None,
        "l": [1, "a"],
        "d": {"a": None},
    }
    assert metadata_variables(metadata) == {
        "SAMPLE_METADATA_FOO": "x y",
        "SAMPLE_METADATA_SNAKE_CASE": "3",
        "SAMPLE_METADATA_FOO-BAR": "2.5",
        "SAMPLE_METADATA_T": "True",
        "SAMPLE_METADATA_NONE": "None",
        "SAMPLE_METADATA_L": "[1, 'a']",
        "SAMPLE_METADATA_D": "{'a': None}",
    }


def test_what_hangs_on_metadata_is_left_out_until_there_is_a_sample(tmp_path: Path) -> None:
    # Given a file of which much hangs on the sample, some of it with a default
    file = tmp_path / "compose.yaml"
    file.write_text("""\
services:
  a:
    image: box:${SAMPLE_METADATA_VERSION}
    mem_limit: ${SAMPLE_METADATA_MEMORY-64m}
    cpus: ${SAMPLE_METADATA_CPUS}
    command: [run, "${SAMPLE_METADATA_LEVEL}"]
    environment: ["LEVEL=${SAMPLE_METADATA_LEVEL}", "X=1"]
""")
    # When it is read without a sample and with one
    before = only(str(file))
    after = only(str(file), {"version": 3, "memory": "1g", "cpus": 2, "level": "$HOME"})
    # Then what is known is checked, and a value stands as it is: no variable in it is looked up
    assert (before.image, before.mem_limit, before.cpus) == (None, 64 * 1024**2, None)
    assert before.environment == {"X": "1"}
    assert (after.image, after.mem_limit, after.cpus) == ("box:3", 1024**3, 2.0)
    assert after.command == ("run", "$HOME") and after.environment == {"LEVEL": "$HOME", "X": "1"}


def test_metadata_that_a_sample_lacks_are_named(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text("services:\n  a:\n    image: box:${SAMPLE_METADATA_VERSION}\n")
    with pytest.raises(UsageError) as caught:
        read(str(file), {"level": 1}, NOTHING.get)
    assert "compose.yaml:3: services.a.image: the variable SAMPLE_METADATA_VERSION is not set" in str(caught.value)
    assert "the sample's metadata has no such entry" in str(caught.value)


def test_metadata_go_before_variables_of_the_run() -> None:
    config = {"image": "${SAMPLE_METADATA_IMAGE}"}
    assert only(config, {"image": "of-sample"}, SAMPLE_METADATA_IMAGE="of-run").image == "of-sample"
    assert only(config, {}, SAMPLE_METADATA_IMAGE="of-run").image == "of-run"
