"""The fake Kubernetes keeps objects, tells watchers of them, and refuses what a real one refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kube_client import KubeClient
from kube_pods import pod

from proctor_testkit import FakeKubernetes

MERGE = "application/merge-patch+json"


@pytest.fixture
def cluster() -> Iterator[FakeKubernetes]:
    with FakeKubernetes(namespace="tests") as cluster:
        yield cluster


@pytest.fixture
def client(cluster: FakeKubernetes) -> KubeClient:
    return KubeClient(cluster)


def configmaps(client: KubeClient, *names: str) -> None:
    for name in names:
        about = {"name": name, "labels": {"n": name}}
        assert client.call("POST", f"{client.core}/configmaps", {"metadata": about, "data": {"n": name}})[0] == 201


def test_only_who_has_the_token_is_served(cluster: FakeKubernetes, client: KubeClient) -> None:
    client._token = "another"

    status, said = client.call("GET", client.pods)

    assert (status, said["reason"]) == (401, "Unauthorized")


def test_lists_come_in_pages(client: KubeClient) -> None:
    configmaps(client, "a", "b", "c", "d", "e")
    path, found, more = f"{client.core}/configmaps", list[str](), ""

    while True:
        _, page = client.call("GET", path, limit=2, **({"continue": more} if more else {}))
        found += [one["metadata"]["name"] for one in page["items"]]
        if not (more := page["metadata"].get("continue", "")):
            break

    assert found == ["a", "b", "c", "d", "e"]


def test_a_page_that_is_asked_for_too_late_is_expired(cluster: FakeKubernetes, client: KubeClient) -> None:
    configmaps(client, "a", "b", "c")
    token = client.call("GET", f"{client.core}/configmaps", limit=1)[1]["metadata"]["continue"]

    cluster.expire_watches()

    status, said = client.call("GET", f"{client.core}/configmaps", limit=1, **{"continue": token})
    assert (status, said["reason"]) == (410, "Expired")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("n=a", ["a"]),
        ("n!=a", ["b", "c"]),
        ("n in (a, c)", ["a", "c"]),
        ("n notin (a,c)", ["b"]),
        ("n", ["a", "b", "c"]),
        ("!n", []),
        ("n,n!=b,n!=c", ["a"]),
    ],
)
def test_labels_select(client: KubeClient, selector: str, found: list[str]) -> None:
    configmaps(client, "a", "b", "c")

    listed = client.call("GET", f"{client.core}/configmaps", labelSelector=selector)[1]["items"]

    assert [one["metadata"]["name"] for one in listed] == found


def test_a_watch_tells_what_changes_after_a_version(client: KubeClient) -> None:
    path = f"{client.core}/configmaps"
    configmaps(client, "a")
    version = client.call("GET", path)[1]["metadata"]["resourceVersion"]
    configmaps(client, "b")
    client.raw("PATCH", f"{path}/a", {"data": {"n": "2"}}, kind=MERGE)
    client.call("DELETE", f"{path}/a")

    with client.watch(path, resourceVersion=version) as events:
        heard = [next(events) for _ in range(3)]

    names = [(one["type"], one["object"]["metadata"]["name"]) for one in heard]
    assert names == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
    versions = [int(one["object"]["metadata"]["resourceVersion"]) for one in heard]
    assert versions == sorted(set(versions)) and versions[0] > int(version)


def test_a_watch_sees_what_enters_and_leaves_its_selector(client: KubeClient) -> None:
    path = f"{client.core}/configmaps"
    configmaps(client, "a")
    with client.watch(path, labelSelector="colour=blue") as events:
        client.raw("PATCH", f"{path}/a", {"metadata": {"labels": {"colour": "blue"}}}, kind=MERGE)
        client.raw("PATCH", f"{path}/a", {"metadata": {"labels": {"colour": None}}}, kind=MERGE)

        assert [next(events)["type"], next(events)["type"]] == ["ADDED", "DELETED"]


def test_a_watch_has_bookmarks_and_ends_when_its_time_is_over(client: KubeClient) -> None:
    configmaps(client, "a")
    query = {"allowWatchBookmarks": "true", "sendInitialEvents": "true", "timeoutSeconds": "1"}

    with client.watch(f"{client.core}/configmaps", **query) as events:
        heard = list(events)

    assert [one["type"] for one in heard[:2]] == ["ADDED", "BOOKMARK"]
    assert heard[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_that_is_open_expires(cluster: FakeKubernetes, client: KubeClient) -> None:
    version = client.call("GET", client.pods)[1]["metadata"]["resourceVersion"]
    with client.watch(resourceVersion=version) as events:
        cluster.wait("^watch")
        client.call("POST", client.pods, pod("a"))
        next(events)

        cluster.expire_watches()

        rest = [event["object"] for event in events if event["type"] == "ERROR"]
    assert [one["code"] for one in rest] == [410]
    with client.watch(resourceVersion=version) as events:
        assert [event["object"]["reason"] for event in events] == ["Expired"]


def test_versions_that_differ_are_a_conflict(client: KubeClient) -> None:
    configmaps(client, "a")
    path = f"{client.core}/configmaps/a"
    _, found = client.call("GET", path)
    client.raw("PATCH", path, {"data": {"n": "2"}}, kind=MERGE)

    status, said = client.call("PUT", path, {**found, "data": {"n": "3"}})
    other, about = client.call("DELETE", path, {"preconditions": {"uid": "another"}})

    assert (status, said["reason"]) == (409, "Conflict")
    assert (other, about["reason"]) == (409, "Conflict")


def test_what_an_object_owned_goes_with_it(client: KubeClient) -> None:
    configmaps(client, "owner")
    owner = client.call("GET", f"{client.core}/configmaps/owner")[1]["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    about = {"name": "owned", "ownerReferences": [reference]}
    client.call("POST", f"{client.core}/secrets", {"metadata": about})

    client.call("DELETE", f"{client.core}/configmaps/owner")

    assert client.call("GET", f"{client.core}/secrets/owned")[0] == 404


def test_a_finalizer_holds_an_object(client: KubeClient) -> None:
    path = f"{client.core}/configmaps"
    client.call("POST", path, {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})

    client.call("DELETE", f"{path}/held")
    still = client.call("GET", f"{path}/held")[1]
    client.raw("PATCH", f"{path}/held", {"metadata": {"finalizers": None}}, kind=MERGE)

    assert still["metadata"]["deletionTimestamp"]
    assert client.call("GET", f"{path}/held")[0] == 404


def test_a_dry_run_makes_nothing(cluster: FakeKubernetes, client: KubeClient) -> None:
    status, made = client.call("POST", client.pods, pod("a"), dryRun="All")

    assert (status, made["spec"]["restartPolicy"]) == (201, "Always")
    assert cluster.objects() == []


def test_unknown_fields_are_refused_or_warned_of(client: KubeClient) -> None:
    wrong = pod("a")
    wrong["spec"]["containers"][0]["comand"] = ["true"]

    status, said = client.call("POST", client.pods, wrong, fieldValidation="Strict")
    made, headers, _ = client.raw("POST", client.pods, wrong)

    assert status == 400 and 'unknown field "spec.containers[0].comand"' in said["message"]
    assert made == 201 and "comand" in headers["warning"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metadata": {"name": "Not_A_Name"}}, "metadata.name"),
        ({"metadata": {"name": "a", "labels": {"sample": "x" * 64}}}, "no more than 63"),
        ({"metadata": {"name": "a", "labels": {"sample": "a/b"}}}, "a valid label"),
        ({"spec": {"containers": []}}, "spec.containers: Required value"),
        ({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]}}, "Duplicate value"),
        ({"spec": {"containers": [{"name": "a", "image": "x", "volumeMounts": [{"name": "v"}]}]}}, "Not found"),
        ({"spec": {"containers": [{"name": "a", "image": "x"}], "restartPolicy": "Maybe"}}, "Unsupported value"),
    ],
)
def test_invalid_pods_are_refused(client: KubeClient, change: dict[str, object], said: str) -> None:
    status, answer = client.call("POST", client.pods, {**pod("a"), **change})

    assert (status, answer["reason"]) == (422, "Invalid")
    assert said in answer["message"]


def test_a_pod_needs_its_namespace_and_its_account(client: KubeClient) -> None:
    no_account, why = client.call("POST", client.pods, pod("a", serviceAccountName="builder"))
    no_class, reason = client.call("POST", client.pods, pod("a", runtimeClassName="gvisor"))
    nowhere, said = client.call("POST", "/api/v1/namespaces/nowhere/pods", pod("a"))

    assert no_account == no_class == 403
    assert 'serviceaccount "builder" not found' in why["message"] and "gvisor" in reason["message"]
    assert nowhere == 404 and 'namespaces "nowhere" not found' in said["message"]


def test_a_quota_holds_and_is_free_again(cluster: FakeKubernetes, client: KubeClient) -> None:
    hard = {"pods": "5", "limits.memory": "100Mi"}
    cluster.apply({"kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": hard}})
    asking = pod("first")
    asking["spec"]["containers"][0]["resources"] = {"limits": {"memory": "60Mi"}}
    second = {**asking, "metadata": {"name": "second"}}

    made, _ = client.call("POST", client.pods, asking)
    over, said = client.call("POST", client.pods, second)
    silent, why = client.call("POST", client.pods, pod("third"))
    used = client.call("GET", f"{client.core}/resourcequotas/small")[1]["status"]["used"]
    client.call("DELETE", f"{client.pods}/first")
    client.until("first", "Gone")

    assert (made, over, silent) == (201, 403, 403)
    assert "exceeded quota: small, requested: limits.memory=62914560" in said["message"]
    assert "must specify limits.memory" in why["message"]
    assert used == {"pods": "1", "limits.memory": "62914560"}
    assert client.call("POST", client.pods, second)[0] == 201
