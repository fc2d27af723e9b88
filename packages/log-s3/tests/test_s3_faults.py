"""What goes wrong with an object store, and what a person or a run makes of it."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from proctor import Task, plugins
from proctor.contracts import PrerequisiteError, UsageError
from proctor.dataset import Sample
from proctor.engine import run
from proctor.log import list_spills, push_spill, read_eval_log
from proctor_log_s3._store import S3Store
from proctor_testkit import FaultProxy

FAULTS = [(503, "SlowDown"), (500, "InternalError"), (503, "ServiceUnavailable"), (400, "RequestTimeout")]


@pytest.fixture(autouse=True)
def spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_SPILL_DIR", str(tmp_path / "spill"))
    monkeypatch.setenv("PROCTOR_STORE_PATIENCE", "0")


# What passes


@pytest.mark.parametrize(("status", "code"), FAULTS)
def test_what_passes_is_tried_again(store: S3Store, proxy: FaultProxy, bucket: str, status: int, code: str) -> None:
    proxy.fail(status, code, times=4, match=r"^PUT")
    sink = store.create(f"{bucket}/a.eval")
    proxy.fail(status, code, times=4, match=r"^PUT")

    sink.commit(b"one", b"")
    sink.close()

    assert store.read(f"{bucket}/a.eval") == b"one"


def test_a_connection_that_is_cut_is_made_again(store: S3Store, proxy: FaultProxy, bucket: str) -> None:
    sink = store.create(f"{bucket}/a.eval")
    proxy.cut(times=3)

    sink.commit(b"one", b"")
    proxy.disconnect()
    sink.close()

    assert store.read(f"{bucket}/a.eval") == b"one"


def test_a_store_that_asks_to_slow_down_for_too_long(store: S3Store, proxy: FaultProxy, bucket: str) -> None:
    proxy.fail(503, "SlowDown", times=None)

    with pytest.raises(OSError, match="asks to slow down"):
        list(store.list(bucket))

    assert len(proxy.requests) == 6  # bounded


@pytest.mark.parametrize(("match", "times"), [("^PUT", 1), ("^HEAD", 2)])  # the SDK asks for the region, too
def test_expired_credentials_are_looked_for_again(
    store: S3Store,
    proxy: FaultProxy,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    match: str,
    times: int,
) -> None:
    # given credentials in a file, which another program renews
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    file.write_text("[default]\naws_access_key_id = OLD\naws_secret_access_key = s\naws_session_token = old\n")
    sink = store.create(f"{bucket}/a.eval")
    before = store._client._client(instead_of=None)
    # when they expire, and the file has others by then
    file.write_text("[default]\naws_access_key_id = NEW\naws_secret_access_key = s\naws_session_token = new\n")
    proxy.fail(400, "ExpiredToken", times=times, match=match)
    sink.commit(b"one", b"")
    size = store.stat(f"{bucket}/a.eval").size
    # then nothing is lost
    after = store._client._client(instead_of=None)
    assert size == 3
    assert [client._request_signer._credentials.access_key for client in (before, after)] == ["OLD", "NEW"]
    sink.close()


@pytest.mark.parametrize("seconds", [3600.0, -86400.0])
def test_a_clock_that_goes_wrong_in_mid_run_is_set_right_by_the_stores(
    store: S3Store, proxy: FaultProxy, bucket: str, seconds: float
) -> None:
    # given a log that is being written when the clocks part
    sink = store.create(f"{bucket}/a.eval")
    sink.commit(b"one", b"")
    proxy.skew(seconds, tolerance=900)
    # when it goes on, and is looked at (a HEAD hears no reason)
    sink.commit(b"two", b"")
    other = S3Store()
    size = other.stat(f"{bucket}/a.eval").size
    sink.commit(b"three", b"")
    # and this machine's clock is set right in the middle
    proxy.skew(0.0, tolerance=900)
    sink.close()
    # then nothing is lost, and each change costs each store one request
    assert size == 6 and store.read(f"{bucket}/a.eval") == b"onetwothree"
    assert sum(one.status == 403 for one in proxy.requests) == 3


def test_a_head_that_is_refused_for_another_reason_is_not_asked_again(
    store: S3Store, proxy: FaultProxy, bucket: str
) -> None:
    proxy.fail(403, "AccessDenied", times=None, match="^HEAD")

    with pytest.raises(PermissionError):
        store.stat(f"{bucket}/a.eval")

    assert {one.method for one in proxy.requests} == {"HEAD"} and store._client.clock.ahead.total_seconds() == 0


# What is said before a run


def test_a_clock_that_is_wrong_is_told_of(store: S3Store, proxy: FaultProxy, bucket: str) -> None:
    proxy.skew(3600, tolerance=900)

    with pytest.warns(UserWarning, match=r"(3600|3599) s behind the object store's"):
        store.check(f"{bucket}/logs")


def said(store: S3Store, folder: str, **how: Any) -> str:
    with pytest.raises(UsageError) as caught:
        store.check(folder, **how)
    return str(caught.value)


@pytest.mark.parametrize("dry", [True, False])
def test_a_bucket_that_is_not_there(store: S3Store, proxy: FaultProxy, dry: bool) -> None:
    text = said(store, "no-such-bucket/logs", dry=dry)

    assert "there is no bucket 'no-such-bucket'" in text and "aws s3 mb" in text and "--log-dir" in text


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "AccessDenied", "s3:PutObject"),
        (403, "InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"),
        (403, "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
        (403, "RequestTimeTooSkewed", "Set the clock of this machine"),
        (400, "ExpiredToken", "renew them"),
    ],
)
def test_a_store_that_refuses(
    store: S3Store, proxy: FaultProxy, bucket: str, status: int, code: str, words: str
) -> None:
    proxy.skew(3600)
    proxy.fail(status, code, times=None)

    text = said(store, f"{bucket}/logs")

    assert (words in text and code != "RequestTimeTooSkewed") or "there it is" in text


def test_no_credentials(store: S3Store, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)

    text = said(store, f"{bucket}/logs")

    assert "no usable AWS credentials" in text and "AWS_PROFILE" in text


def test_a_profile_that_is_not_there(store: S3Store, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "missing")

    assert "missing" in said(store, f"{bucket}/logs")


def test_a_server_that_is_not_there(store: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    assert "can't be reached" in said(store, "bucket/logs")


@pytest.mark.parametrize("folder", ["", "/logs"])
def test_an_address_without_a_bucket(store: S3Store, folder: str) -> None:
    assert "names no bucket" in said(store, folder)


def test_a_bucket_whose_name_can_be_none(store: S3Store) -> None:
    assert "no address" in said(store, "not a bucket!/logs")


def test_a_server_that_ignores_conditions_is_warned_of(
    store: S3Store, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = store._client.call

    def without_conditions(operation: str, place: Any, **arguments: Any) -> Any:
        return call(operation, place, **{key: value for key, value in arguments.items() if not key.startswith("If")})

    monkeypatch.setattr(store._client, "call", without_conditions)

    with pytest.warns(UserWarning, match="ignores conditional writes"):
        store.check(f"{bucket}/logs")


def test_a_style_of_addresses_that_is_none(store: S3Store, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_S3_ADDRESSING_STYLE", "round")

    assert "use one of auto, path, virtual" in said(store, f"{bucket}/logs")


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({"AWS_ENDPOINT_URL": "http://minio.local:9000"}, "http://minio.local:9000/bucket"),
        ({"AWS_ENDPOINT_URL_S3": "http://minio.local:9000"}, "http://minio.local:9000/bucket"),
        (
            {"AWS_ENDPOINT_URL": "http://minio.local:9000", "PROCTOR_S3_ADDRESSING_STYLE": "virtual"},
            "http://bucket.minio.local:9000/",
        ),
        ({}, "https://bucket.s3.amazonaws.com/"),
    ],
)
def test_where_requests_go(settings: dict[str, str], address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    client = S3Store()._client._client(instead_of=None)

    url = client.generate_presigned_url("list_objects_v2", Params={"Bucket": "bucket"})

    assert url.startswith(address)


@pytest.mark.parametrize("name", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_the_region_is_what_the_variable_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "eu-west-1")

    assert S3Store()._client._client(instead_of=None).meta.endpoint_url == "https://s3.eu-west-1.amazonaws.com"


def test_without_the_sdk_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_boto3(name: str, *rest: Any, **how: Any) -> Any:
        if name.partition(".")[0] in ("boto3", "botocore", "proctor_log_s3"):
            raise ModuleNotFoundError(f"No module named '{name}'", name="boto3")
        return real(name, *rest, **how)

    record = plugins.get("log_stores", "s3")
    monkeypatch.setattr(builtins, "__import__", without_boto3)

    with (
        pytest.raises(PrerequisiteError, match=r"needs the Python package 'boto3'.*pip install 'boto3"),
        plugins.complete("log_stores", "s3"),
    ):
        record.factory()


# A run whose store is lost


def test_a_run_whose_bucket_is_gone_goes_on_and_is_sent_when_it_is_back(
    proxy: FaultProxy, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # given a run whose bucket is gone after the first sample's commit
    commits = 0

    def gone(method: str, path: str) -> None:
        nonlocal commits
        commits += method == "PUT" and ".parts/" in path
        if commits == 2:
            proxy.fail(404, "NoSuchBucket", times=None)

    proxy.on_request = gone
    task = Task(dataset=[Sample(input=str(n), target="4", id=n) for n in range(20)], name="t")
    # when it has gone to its end
    result = run(task, "mock/model", {"log_dir": f"s3://{bucket}/logs", "display": "plain"})
    # then it has failed by its exit code, and everything is here
    [spill] = list_spills()
    text = " ".join("".join(capsys.readouterr()).split())
    assert result.exit_code == 1 and f"there is no bucket '{bucket}'" in text and "proctor log push" in text
    assert spill.location.startswith(f"s3://{bucket}/logs/") and result.logs[0].location == spill.path
    assert len(read_eval_log(spill.path).samples or []) == 20
    # and goes where it belongs once the bucket is back, though the store takes its run for alive
    proxy.on_request = None
    proxy.clear()
    pushed = push_spill(spill)
    assert pushed.sent and len(read_eval_log(spill.location).samples or []) == 20
    assert list_spills() == []
    assert [name for name, _ in S3Store().list(bucket)] == [spill.location[5:]]
