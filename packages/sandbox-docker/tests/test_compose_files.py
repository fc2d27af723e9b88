"""Whole compose files: services, networks, volumes, includes, the default, and where errors are."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import UsageError
from proctor_sandbox_docker.compose import (
    Given,
    NetworkSpec,
    ProjectSpec,
    ServiceSpec,
    UnsupportedKeyError,
    VolumeSpec,
    project_risks,
    read_compose,
    read_compose_file,
    start_order,
)

NOTHING: dict[str, str] = {}


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], ProjectSpec]:
    def read(text: str) -> ProjectSpec:
        file = tmp_path / "compose.yaml"
        file.write_text(textwrap.dedent(text))
        return read_compose_file(file, Given(NOTHING.get))

    return read


def test_a_service_alone_has_no_network_of_its_own(project: Callable[[str], ProjectSpec]) -> None:
    found = project("services: {box: {image: a}}")
    assert found.default == "box" and not found.networks
    assert found.service("box").network_mode == "bridge"


def test_services_find_each_other_in_a_network_of_the_sample(project: Callable[[str], ProjectSpec]) -> None:
    found = project("services: {web: {image: a}, db: {image: b}, apart: {image: c, network_mode: none}}")
    assert found.networks == {"default": NetworkSpec("default")}
    assert found.service("web").networks == found.service("db").networks == {"default": ()}
    assert not found.service("apart").networks


def test_one_service_among_those_without_a_network_needs_none(project: Callable[[str], ProjectSpec]) -> None:
    found = project("services: {web: {image: a}, apart: {image: c, network_mode: none}}")
    assert not found.networks and found.service("web").network_mode == "bridge"


def test_networks_and_volumes_are_those_that_services_name(project: Callable[[str], ProjectSpec]) -> None:
    found = project("""
        services:
          web: {image: a, networks: [inner], volumes: ["store:/x"]}
        networks:
          inner: {internal: true, driver: bridge, ipam: {config: [{subnet: 10.9.0.0/24}]}, driver_opts: {a: 1}}
          shared: {external: true, name: theirs}
          unused:
        volumes:
          store: {driver: local, driver_opts: {type: tmpfs}}
          unused:
    """)
    inner = NetworkSpec("inner", internal=True, driver="bridge", subnets=("10.9.0.0/24",), options={"a": "1"})
    assert found.networks == {"inner": inner}
    assert found.volumes == {"store": VolumeSpec("store", driver="local", options={"type": "tmpfs"})}


def test_what_is_external_keeps_its_name(project: Callable[[str], ProjectSpec]) -> None:
    found = project("""
        services: {web: {image: a, networks: [out, named], volumes: ["store:/x"]}}
        networks: {out: {external: true}, named: {external: true, name: theirs}}
        volumes: {store: {external: true}}
    """)
    assert [found.networks[name].external for name in ("out", "named")] == ["out", "theirs"]
    assert found.volumes["store"].external == "store"


@pytest.mark.parametrize(
    ("services", "default"),
    [
        ("{a: {image: x}, default: {image: x}}", "default"),
        ("{a: {image: x}, b: {image: x, x-default: true}, default: {image: x}}", "b"),
        ("{b: {image: x}, a: {image: x}}", "b"),
    ],
)
def test_the_default_service(project: Callable[[str], ProjectSpec], services: str, default: str) -> None:
    assert project(f"services: {services}").default == default


def test_anchors_and_merges_are_followed(project: Callable[[str], ProjectSpec]) -> None:
    found = project("""
        x-base: &base {image: a, init: true, environment: {A: 1}}
        services:
          one: {<<: *base, image: own}
          two: *base
          three:
            <<: [*base, {hostname: h}]
    """)
    assert [service.image for service in found.services] == ["own", "a", "a"]
    assert found.service("three").hostname == "h" and found.service("one").init


def test_services_with_profiles_are_not_started(project: Callable[[str], ProjectSpec]) -> None:
    found = project("services: {a: {image: x}, tool: {image: x, profiles: [dev]}}")
    assert [service.name for service in found.services] == ["a"]


def test_version_name_and_extensions_mean_nothing(project: Callable[[str], ProjectSpec]) -> None:
    assert project("{version: '3', name: shop, x-k8s: {a: b}, services: {a: {image: x, x-mine: 1}}}").default == "a"


def test_scalars_are_those_of_yaml_1_2(project: Callable[[str], ProjectSpec]) -> None:
    found = project("services: {a: {image: x, environment: {A: yes, B: 22:22, C: 2024-01-01, D: 0x10, E: ~, F: .5}}}")
    assert found.service("a").environment == {"A": "yes", "B": "22:22", "C": "2024-01-01", "D": "16", "F": "0.5"}


def test_other_files_are_included_with_their_own_folder(tmp_path: Path) -> None:
    # Given a file that includes two others: one with a build and variables of its own, one that uses our network
    (tmp_path / "db" / "image").mkdir(parents=True)
    (tmp_path / "db" / "image" / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "db" / ".env").write_text("TAG=7\n")
    (tmp_path / "db" / "compose.yaml").write_text(
        "services: {db: {build: image, environment: ['TAG=${TAG}'], volumes: ['d:/d']}}\nvolumes: {d: }\n"
    )
    (tmp_path / "mail.yaml").write_text("services: {mail: {image: m, networks: [inner]}}")
    file = tmp_path / "compose.yaml"
    file.write_text(
        "include: [mail.yaml, {path: db/compose.yaml}]\n"
        "services: {default: {image: a, depends_on: [db]}}\nnetworks: {inner: {internal: true}}\n"
    )
    # When
    found = read_compose_file(file, Given(NOTHING.get))
    # Then
    assert [service.name for service in found.services] == ["mail", "db", "default"] and found.default == "default"
    build = found.service("db").build
    assert build is not None and build.context == tmp_path / "db" / "image"
    assert found.service("db").environment == {"TAG": "7"} and found.networks["inner"].internal


def test_variables_of_the_run_go_before_those_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=file\nB=file\n")
    (tmp_path / "compose.yaml").write_text("services: {a: {image: '${A}-${B}'}}")
    assert read_compose_file(tmp_path / "compose.yaml", Given({"A": "run"}.get)).service("a").image == "run-file"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "compose.yaml: a compose file must be a mapping with services"),
        ("- a", "compose.yaml:1: a compose file must be a mapping with services"),
        ("services:\n", "services: there is no service"),
        ("services:\n  a: {image: x\n  b: 1", "compose.yaml:3: this is no YAML"),
        ("services:\n  a:\n    image: x\n    image: y", "compose.yaml:4: the key 'image' stands twice"),
        ("services:\n  a: {}\n", "compose.yaml:2: services.a: needs image or build"),
        ("services:\n  a: busybox\n", "compose.yaml:2: services.a: a service must be a mapping"),
        ("services:\n  a b: {image: x}\n", "compose.yaml:2: services.a b: a service's name has letters"),
        ("services: {a: {image: x, x-default: true}, b: {image: x, x-default: true}}", "a and b both say x-default"),
        ("services: {a: {image: x, profiles: [p]}}", "every service has a profile"),
        ("services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}", "services wait for each other"),
        ("services: {a: {image: x, network_mode: 'service:a'}}", "services wait for each other: a -> a"),
        ("services: {a: {image: x}}\nnetworks:\n  n: {name: mine}", "compose.yaml:3: networks.n.name: all samples"),
        ("services: {a: {image: x}}\nvolumes:\n  n: {name: mine}", "compose.yaml:3: volumes.n.name: all samples"),
        ("include: [nowhere.yaml]\nservices: {a: {image: x}}", "nowhere.yaml: can't be read"),
        ("include: [compose.yaml]\nservices: {a: {image: x}}", "files include each other"),
        ("a: &a [*a]", "nested too deeply"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(
    project: Callable[[str], ProjectSpec], text: str, said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        project(text)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["secrets: {a: {file: x}}", "configs: {}", "networks: {n: {driver: overlay}}"])
def test_parts_that_are_not_understood_are_named(project: Callable[[str], ProjectSpec], text: str) -> None:
    with pytest.raises(UnsupportedKeyError, match=r"compose\.yaml:2: (secrets|configs|networks\.n\.driver): "):
        project(f"services: {{a: {{image: x}}}}\n{text}")


def test_a_dict_is_read_like_a_file(tmp_path: Path) -> None:
    found = read_compose({"services": {"a": {"image": "${X:-y}", "init": True}}}, tmp_path, Given(NOTHING.get))
    assert found.service("a").image == "y"
    with pytest.raises(UsageError, match=r"^compose: services\.a\.foo: this key"):
        read_compose({"services": {"a": {"image": "x", "foo": 1}}}, tmp_path, Given(NOTHING.get))


def test_a_user_is_told_what_a_file_can_reach(tmp_path: Path) -> None:
    services = {"a": {"image": "x", "volumes": [".:/src", ".:/ro:ro"], "ports": ["0.0.0.0:80:80", "81"]}}
    told = list(project_risks(read_compose({"services": services}, tmp_path, Given(NOTHING.get))))
    assert told == [
        f"service 'a' can change {tmp_path} of this machine (mounted without :ro)",
        "service 'a' shows port 80/tcp to every network of this machine",
    ]


@given(st.data())
def test_a_service_starts_after_all_that_it_waits_for(data: st.DataObject) -> None:
    # Given services of which each may depend on earlier ones, in any order
    count = data.draw(st.integers(1, 8))
    services = [
        ServiceSpec(
            str(index),
            depends_on={str(n): "service_started" for n in data.draw(st.sets(st.integers(0, index - 1)))}
            if index
            else {},
        )
        for index in range(count)
    ]
    # When
    groups = start_order(data.draw(st.permutations(services)))
    # Then
    place = {service.name: number for number, group in enumerate(groups) for service in group}
    assert len(place) == count
    for service in services:
        assert all(place[other] < place[service.name] for other in service.depends_on)
