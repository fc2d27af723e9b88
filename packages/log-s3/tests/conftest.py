"""An object store on loopback, and a store of ours that talks to it through a proxy."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import boto3
import pytest
from botocore.loaders import create_loader
from botocore.retries.standard import ExponentialBackoff
from moto.server import ThreadedMotoServer

from proctor_log_s3._store import S3Store
from proctor_testkit import FaultProxy

_numbers = count(1)


@pytest.fixture(scope="session")
def upstream() -> Iterator[str]:
    """The address of a server that speaks S3."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    inner: Any = server._server
    answer, alone = inner.app, threading.Lock()

    def one_at_a_time(environ: Any, start_response: Any) -> list[bytes]:
        with alone:  # it looks at a condition and writes in two steps, which no object store does
            return [b"".join(answer(environ, start_response))]

    inner.app = one_at_a_time
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the tests, whatever the machine has."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIATEST",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def one_loader() -> Iterator[None]:
    """Every client of the SDK reads the same 700 KB of JSON about S3; here they read it once."""
    with pytest.MonkeyPatch.context() as patch:
        loader = create_loader()
        patch.setattr("botocore.session.create_loader", lambda path=None: loader)
        yield


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK tries again at once."""
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda self, context: 0.0)


@pytest.fixture
def proxy(upstream: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """What stands between; `AWS_ENDPOINT_URL` names it."""
    with FaultProxy(upstream) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.base_url)
        yield proxy


@pytest.fixture
def s3(upstream: str, credentials: None) -> Any:
    """A client of the SDK that talks to the server itself."""
    return boto3.client("s3", endpoint_url=upstream, region_name="us-east-1")


@pytest.fixture
def bucket(s3: Any) -> str:
    """A new bucket."""
    name = f"bucket-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture
def store(proxy: FaultProxy) -> S3Store:
    """A store that sees the bucket through the proxy."""
    return S3Store()
