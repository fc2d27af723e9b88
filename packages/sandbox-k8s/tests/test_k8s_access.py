"""Without a cluster that does what is needed nothing begins; and what a pod's object says of its end."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from proctor.contracts import PrerequisiteError, UsageError
from proctor_sandbox_k8s._driver import KubernetesDriver
from proctor_sandbox_k8s._state import hopeless, is_ready, problem, summary, waits_for
from proctor_testkit import FakeKubernetes

NOWHERE = """\
apiVersion: v1
kind: Config
current-context: gone
contexts: [{name: gone, context: {cluster: gone, user: me}}]
clusters: [{name: gone, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: me, user: {token: x}}]
"""


@pytest.mark.anyio
async def test_no_kubeconfig_is_said_before_anything_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(UsageError, match="there is no cluster: no kubeconfig"):
        await KubernetesDriver().check("an-image")


@pytest.mark.anyio
async def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    (tmp_path / "config").write_text(NOWHERE)

    with pytest.raises(PrerequisiteError, match="the cluster of context 'gone' does not answer"):
        await KubernetesDriver().check("an-image")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("image=a,context=elsewhere", "there is no context 'elsewhere'"),
        ("image=a,namespace=nowhere", "has no namespace nowhere: kubectl create namespace nowhere"),
        ({"image": "a", "imagee": "b"}, "imagee: unknown key"),
    ],
)
async def test_what_the_cluster_does_not_have_is_refused(cluster: FakeKubernetes, config: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        await KubernetesDriver().check(config)


@pytest.mark.anyio
async def test_a_user_who_is_not_known_is_refused(cluster: FakeKubernetes) -> None:
    cluster.fail(401, "Unauthorized", on="^list pods")

    with pytest.raises(PrerequisiteError, match="does not know this user: Unauthorized"):
        await KubernetesDriver().check("an-image")


def pod(phase: str, *, reason: str | None = None, message: str | None = None, **state: Any) -> dict[str, Any]:
    status: dict[str, Any] = {"phase": phase, "reason": reason, "message": message}
    if state:
        status["containerStatuses"] = [{"name": "default", **state}]
    return {"metadata": {"uid": "1"}, "spec": {"nodeName": "n", "containers": [{"name": "default"}]}, "status": status}


RUNNING = pod("Running", ready=True, restartCount=0, state={"running": {}})
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (RUNNING, None),
        (pod("Pending", state={"waiting": {"reason": "ContainerCreating"}}), None),
        (pod("Failed", state=KILLED), "used more memory than its limit and was killed (OOMKilled)"),
        (pod("Running", ready=True, restartCount=1, state={"running": {}}, lastState=KILLED), "and was started again"),
        (pod("Failed", reason="Evicted", message="disk", state=KILLED), "it was evicted from its node: disk"),
        (pod("Failed", reason="DeadlineExceeded"), "its activeDeadlineSeconds are over"),
        (pod("Succeeded"), "it has ended (Succeeded)"),
        (pod("Failed", state={"terminated": {"exitCode": 3, "reason": "Error"}}), "default ended with exit code 3"),
        ({**RUNNING, "metadata": {"uid": "1", "deletionTimestamp": "now"}}, "it is being deleted"),
        ({**RUNNING, "metadata": {"uid": "2"}}, "it was replaced by another pod of the same name"),
    ],
)
def test_what_became_of_a_pod_is_told_apart(found: dict[str, Any], said: str | None) -> None:
    told = problem(found, "1")

    assert told is None if said is None else said in str(told)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            pod("Pending", state={"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}),
            "ImagePullBackOff",
        ),
        (pod("Pending", state={"waiting": {"reason": "ContainerCreating"}}), "containers are being created"),
        (pod("Running", ready=False, state={"running": {}}), "Running, but not ready: default"),
    ],
)
def test_what_a_pod_waits_for_is_said(found: dict[str, Any], said: str) -> None:
    assert said in waits_for(found) and said in summary(found)
    assert not is_ready(found) and not hopeless(found)


def test_what_can_never_run_is_not_waited_for() -> None:
    assert hopeless(pod("Pending", state={"waiting": {"reason": "InvalidImageName"}}))
    assert is_ready(RUNNING) and summary(RUNNING) == "Running" and summary(None) == "gone"


@pytest.mark.anyio
async def test_keys_and_certificates_go_to_a_folder_of_the_users_own(
    cluster: FakeKubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("kubernetes.config.kube_config._temp_files", {})  # of contents that it has written before

    await KubernetesDriver().check("an-image")

    [folder] = tmp_path.glob("proctor-[0-9]*")
    assert (folder.name, folder.stat().st_mode & 0o777) == (f"proctor-{os.getuid()}", 0o700)
    assert list(folder.iterdir()) and not list(tmp_path.glob("tmp*"))
