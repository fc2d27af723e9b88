"""Where the logs of the kill tests are: a folder, or a bucket behind a proxy that breaks what passes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from kill_plan import Moment

from proctor_testkit import FaultProxy

__all__ = ["Bucket", "Folder", "ObjectStore", "Place"]

DEAD = 200.0  # seconds that the store's clock is ahead: a lease without a writer has run out
DELAY = 0.05  # seconds
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIATEST",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_numbers = count(1)


class Place:
    """A folder of logs.

    Args:
        log_dir: as ``--log-dir`` has it.
    """

    def __init__(self, log_dir: str) -> None:
        self.log_dir = log_dir

    def during(self, at: Moment | None, kill: Callable[[], object]) -> AbstractContextManager[object]:
        """A process writes in the block, which ``kill`` kills when it comes to moment ``at``."""
        return nullcontext()


class Folder(Place):
    """On this machine; the moments are those of ``witness.py``."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))


class ObjectStore:
    """A server that speaks S3, and a proxy before it. A context manager, in which ``os.environ`` leads to the proxy."""

    def __init__(self) -> None:
        import logging

        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)

    def __enter__(self) -> ObjectStore:
        self._server.start()
        host, port = self._server.get_host_and_port()
        self._upstream = f"http://{host}:{port}"
        self.proxy = FaultProxy(self._upstream).__enter__()
        self.proxy.skew(DEAD)
        self._before = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("AWS_")}
        os.environ.update(CREDENTIALS, AWS_ENDPOINT_URL=self.proxy.base_url)
        return self

    def __exit__(self, *exception: Any) -> None:
        for name in (*CREDENTIALS, "AWS_ENDPOINT_URL"):
            del os.environ[name]
        os.environ.update(self._before)
        self.proxy.__exit__(None, None, None)
        self._server.stop()

    def bucket(self, seed: int) -> Bucket:
        """A new one, whose faults come from a seed."""
        import boto3

        name = f"kill-{next(_numbers)}"
        keys = {name.lower(): value for name, value in CREDENTIALS.items() if name.endswith("_KEY_ID")}
        client = boto3.client(
            "s3",
            endpoint_url=self._upstream,
            region_name="us-east-1",
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            **keys,
        )
        client.create_bucket(Bucket=name)
        return Bucket(name, self.proxy, seed)


class Bucket(Place):
    """In an object store that is slow, refuses and cuts connections."""

    def __init__(self, name: str, proxy: FaultProxy, seed: int) -> None:
        super().__init__(f"s3://{name}/logs")
        self._proxy = proxy
        self._random = Random(seed)

    @contextmanager
    def during(self, at: Moment | None, kill: Callable[[], object]) -> Iterator[None]:
        """Faults come and go; the process is killed at its n-th write to the store, which happens or does not."""
        left = at.count if at is not None and at.kind == "put" else 0
        lock = threading.Lock()

        def request(method: str, path: str) -> None:
            nonlocal left
            if method not in ("PUT", "POST"):
                return
            with lock:
                left -= 1
                now = left == 0
            if now:
                kill()
                assert at is not None
                if at.share < 0.5:
                    raise ConnectionAbortedError("the process died before it had sent all of it")

        self._break()
        self._proxy.on_request = request
        try:
            yield
        finally:
            self._proxy.on_request = None
            self._proxy.clear()

    def _break(self) -> None:
        random, proxy = self._random, self._proxy
        for _ in range(random.randint(1, 4)):
            match = random.choice(["^PUT", "^PUT", "^POST", "^GET", r"parts/", r"lease"])
            times = random.randint(1, 2)
            kind = random.choice(["delay", "slow", "cut", "lose"])
            if kind == "delay":
                proxy.delay(DELAY, times=10 * times, match=match)
            elif kind == "slow":
                proxy.fail(503, "SlowDown", times=times, match=match)
            elif kind == "cut":
                proxy.cut(times=times, match=match)
            else:
                proxy.lose_reply(times=times, match=match)
