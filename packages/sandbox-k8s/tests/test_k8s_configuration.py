"""What `--sandbox k8s:...`, a values file and a task's mapping ask for; and what is refused, with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import UsageError
from proctor_sandbox_k8s._metadata import names_metadata, with_metadata
from proctor_sandbox_k8s._reading import read_spec
from proctor_sandbox_k8s._source import Tree, read_source
from proctor_sandbox_k8s._spec import NetworkRules, Place, PodSpec

VALUES = """\
image: python:3.12
command: sleep infinity
workingDir: /work
context: staging
namespace: evals
cpu: 2
memory: 4Gi
env:
  GREETING: hello
  DEBUG: true
nodeSelector: {pool: evals}
tolerations:
  - {key: evals, operator: Exists}
serviceAccount: sandbox
runtimeClassName: gvisor
imagePullSecrets: [registry]
activeDeadlineSeconds: 3600
startTimeout: 90
volumes:
  - name: scratch
    emptyDir: {sizeLimit: 1Gi}
volumeMounts:
  - {name: scratch, mountPath: /scratch}
securityContext: {runAsUser: 1000}
annotations: {team: evals}
labels: {cost-center: "42"}
network:
  cidrs: [10.1.0.0/16]
  domains: [data.example.org]
  ports: [443, 53/UDP]
  dns: true
services:
  db:
    image: postgres:17
    env: {POSTGRES_PASSWORD: secret}
    readinessProbe:
      exec: {command: [pg_isready]}
"""


def spec_of(config: Any) -> PodSpec:
    return read_spec(read_source(config))


def refused(config: Any) -> str:
    with pytest.raises(UsageError) as raised:
        spec_of(config)
    return str(raised.value)


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / "k8s.yaml"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize("image", ["python:3.12", "registry.example:5000/a/b@sha256:" + "0" * 64, "busybox"])
def test_an_image_is_enough(image: str) -> None:
    spec = spec_of(image)

    [container] = spec.containers
    assert (container.name, container.image, container.idle) == ("default", image, True)
    assert spec.network == NetworkRules(), "nothing is reached unless it is asked for"


def test_settings_are_what_fits_on_a_command_line() -> None:
    spec = spec_of("image=python:3.12,namespace=evals,memory=2Gi,cpu=500m,network=open,startTimeout=60")

    [container] = spec.containers
    assert container.image == "python:3.12"
    assert container.resources == {
        "requests": {"cpu": "500m", "memory": "2Gi"},
        "limits": {"cpu": "500m", "memory": "2Gi"},
    }
    assert spec.place == Place(None, "evals") and spec.network.open and spec.start_timeout == 60


def test_a_values_file_says_all(written: Any) -> None:
    spec = spec_of(written(VALUES))

    default, db = spec.containers
    assert default.command == ("sleep", "infinity")
    assert default.env == ({"name": "GREETING", "value": "hello"}, {"name": "DEBUG", "value": "true"})
    assert (db.name, db.image, db.idle) == ("db", "postgres:17", False)
    assert db.readiness_probe == {"exec": {"command": ["pg_isready"]}}
    assert spec.place == Place("staging", "evals")
    assert spec.network == NetworkRules(False, ("10.1.0.0/16",), ("data.example.org",), ("443", "53/UDP"), True)
    assert (spec.runtime_class, spec.service_account, spec.image_pull_secrets) == ("gvisor", "sandbox", ("registry",))
    assert (spec.active_deadline, spec.start_timeout) == (3600, 90)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("image: a\nimgae: b\n", "line 2: imgae: unknown key; did you mean image?"),
        ("image: a\nhostNetwork: true\n", "line 2: hostNetwork: unknown key"),
        ("image: a\nservices:\n  db:\n    imagee: b\n", "line 4: services.db.imagee: unknown key; did you mean image?"),
        ("image: a\nservices:\n  db: {command: x}\n", "services.db.image: every container needs an image"),
        ("image: a\nservices:\n  Not_A_Host: {image: b}\n", "services.Not_A_Host: the name of a service has"),
        ("image: a\nimage: b\n", "line 2: image is there twice (see line 1)"),
        ("image: [a\n", "no YAML"),
        ("- a\n", "a mapping was expected"),
        ("command: [sleep]\n", "image: every container needs an image"),
        ("image: a\nvolumes:\n- {name: x, hostPath: {path: /}}\n", "volumes: {'name': 'x', 'hostPath'"),
        ("image: a\nnetwork: closed\n", "line 2: network: none, open, or a mapping of cidrs"),
        ("image: a\nnetwork: {domains: ['*.example.com']}\n", "network.domains: '*.example.com' is no name"),
        ("image: a\nnetwork: {cidrs: [10.0.0.0/33]}\n", "network.cidrs: '10.0.0.0/33'"),
        ("image: a\nnetwork: {ports: [https]}\n", "network.ports: 'https' is no port"),
        ("image: a\nmemory: 1Gi\nresources: {}\n", "resources: there is memory already"),
        ("image: a\nstartTimeout: soon\n", "startTimeout: seconds were expected, not 'soon'"),
        ("image: a\nautomountServiceAccountToken: 1\n", "true or false was expected, not 1"),
        ("image: a\ncommand: 'sh -c \"'\n", "can't be split into words"),
    ],
)
def test_what_is_not_understood_is_an_error_that_names_the_key(written: Any, text: str, said: str) -> None:
    assert said in refused(written(text))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, "no image was named"),
        ("", "no image was named"),
        ("image=a,volumes=b", "'volumes=b': the settings are image=, context="),
        ("image=a,image=b", "image is there twice"),
        ("two words", "neither an image nor settings"),
        ("nowhere/k8s.yaml", "nowhere/k8s.yaml can't be read: No such file"),
        (7, "not 7"),
    ],
)
def test_what_is_no_configuration_is_refused(config: Any, said: str) -> None:
    assert said in refused(config)


def test_a_sample_says_what_is_its_own() -> None:
    tree = Tree(
        {
            "image": "ctf:${SAMPLE_METADATA_CHALLENGE}",
            "env": {"LEVEL": "$SAMPLE_METADATA_LEVEL", "MODE": "${SAMPLE_METADATA_MODE:-easy}"},
            "command": ["sh", "-c", "echo $HOME ${PATH} $$SAMPLE_METADATA_LEVEL"],
        },
        "k8s.yaml",
    )

    values = with_metadata(tree, {"challenge": "rsa", "level": 3}).values

    assert values["image"] == "ctf:rsa"
    assert values["env"] == {"LEVEL": "3", "MODE": "easy"}
    assert values["command"][2] == "echo $HOME ${PATH} $SAMPLE_METADATA_LEVEL"
    assert names_metadata(tree.values) and not names_metadata({"image": "a", "command": ["$HOME"]})


def test_what_a_sample_does_not_say_is_an_error_that_names_the_key() -> None:
    tree = Tree({"services": {"db": {"image": "db:${SAMPLE_METADATA_VERSION}"}}}, "k8s.yaml")

    with pytest.raises(UsageError, match=r"services\.db\.image: the sample has no metadata for SAMPLE_"):
        with_metadata(tree, {"level": 1})


@given(st.text(max_size=60))
def test_any_text_is_an_image_or_a_usage_error(text: str) -> None:
    try:
        spec = read_spec(read_source(text))
    except UsageError:
        return
    assert spec.containers[0].image


_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.sampled_from(["image", "command", "env", "services", "network", "volumes", "labels", "tolerations", "cpu"])


@given(st.dictionaries(_KEYS, _TREES, max_size=4))
def test_any_mapping_is_a_pod_or_a_usage_error(values: dict[str, Any]) -> None:
    try:
        spec = read_spec(read_source(values))
    except UsageError:
        return
    assert spec.containers[0].image
