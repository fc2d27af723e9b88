"""Who has a log: judged by the server's clock, and by nothing else."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from proctor.contracts import LogBusyError
from proctor_log_s3._store import S3Store
from proctor_testkit import FaultProxy


@pytest.fixture
def name(store: S3Store, bucket: str) -> str:
    """A finished log."""
    store.replace(f"{bucket}/a.eval", [b"content"])
    return f"{bucket}/a.eval"


def test_a_log_is_held_by_one_until_it_is_let_go(store: S3Store, name: str) -> None:
    with store.hold(name):
        assert store.live(name) and S3Store().live(name)
        with pytest.raises(LogBusyError, match=rf"a\.eval is in use by process {os.getpid()} on .* since 20"):
            S3Store().hold(name)

    assert not store.live(name)
    store.hold(name).close()


def test_a_log_that_is_written_is_live_and_not_to_be_held(store: S3Store, bucket: str) -> None:
    sink = store.create(f"{bucket}/b.eval")

    with pytest.raises(LogBusyError):
        S3Store().hold(f"{bucket}/b.eval")

    sink.close()
    store.hold(f"{bucket}/b.eval").close()


def test_a_log_that_is_not_there_is_not_to_be_held(store: S3Store, bucket: str) -> None:
    with pytest.raises(FileNotFoundError):
        store.hold(f"{bucket}/none.eval")


@pytest.mark.parametrize(("seconds", "dead"), [(100.0, False), (140.0, True)])
def test_a_lease_that_was_not_renewed_is_dead_by_the_clock_of_the_server(
    store: S3Store, proxy: FaultProxy, name: str, seconds: float, dead: bool
) -> None:
    # given a holder that was killed: its lease stays, and time passes at the server
    lease: Any = store.hold(name)
    lease._end.set()
    proxy.skew(seconds)

    assert store.live(name) is not dead
    if dead:
        store.hold(name).close()
    else:
        with pytest.raises(LogBusyError):
            store.hold(name)


def test_a_lease_is_renewed_while_its_holder_lives(s3: Any, name: str, proxy: FaultProxy) -> None:
    store = S3Store(renew=0.01)
    bucket = name.partition("/")[0]

    def renewed() -> int:
        said = json.loads(s3.get_object(Bucket=bucket, Key="a.eval.lease")["Body"].read())
        assert said["pid"] == os.getpid()
        return int(said["renewed"])

    with store.hold(name):
        # and goes on when the store did not take one of them
        proxy.fail(500, times=8, match=r"^PUT .*lease")
        first = renewed()
        while renewed() < first + 2:
            pass
    assert "a.eval.lease" not in [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]]


def test_a_renewal_whose_reply_was_lost_is_ones_own(store: S3Store, proxy: FaultProxy, name: str) -> None:
    lease: Any = store.hold(name)
    proxy.lose_reply(match=r"^PUT .*lease")

    lease.renew()

    lease.check()
    lease.renew()
    lease.close()


def test_a_lease_that_was_taken_over_is_not_taken_back(store: S3Store, name: str) -> None:
    lease: Any = store.hold(name)
    other = S3Store(dead=-1.0).hold(name)

    lease.renew()

    with pytest.raises(LogBusyError):
        lease.check()
    lease.close()
    assert store.live(name)  # it is the other's, and stays
    other.close()


def test_a_server_that_ignores_conditions_still_tells_two_holders_apart(
    store: S3Store, proxy: FaultProxy, s3: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a server that takes every write: between the look and the write, another has made a lease
    call = store._client.call
    bucket = name.partition("/")[0]

    def without_conditions(operation: str, place: Any, **arguments: Any) -> Any:
        mine = operation == "put_object" and place[1].endswith(".lease")
        arguments = {key: value for key, value in arguments.items() if not key.startswith("If")}
        reply = call(operation, place, **arguments)
        if mine:
            body = json.dumps({"host": "elsewhere", "pid": 7, "token": "other"}).encode()
            s3.put_object(Bucket=bucket, Key="a.eval.lease", Body=body)
        return reply

    monkeypatch.setattr(store._client, "call", without_conditions)

    with pytest.raises(LogBusyError, match="process 7 on elsewhere"):
        store.hold(name)


def test_a_lease_with_any_bytes_is_a_lease(store: S3Store, s3: Any, name: str) -> None:
    for body in (b"", b"[]", b"\xff", b'{"pid": "x", "since": "y"}', b'{"since": 1e300}'):
        s3.put_object(Bucket=name.partition("/")[0], Key="a.eval.lease", Body=body)
        assert store.live(name)
        with pytest.raises(LogBusyError):
            store.hold(name)
