"""The connection: made late, renewed when credentials expire, shared by all threads."""

from __future__ import annotations

import os
import threading
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from proctor.contracts import UsageError
from proctor_log_s3._clock import Clock
from proctor_log_s3._errors import EXPIRED, code_of, translated

__all__ = ["Client", "Place"]

Place = tuple[str, str]
"""Bucket and key."""

_ATTEMPTS = 6  # of each request, at growing distances (20 s at most): some 30 s of SlowDown or of a lost connection
_CONNECT, _READ = 10, 60  # seconds
_CONNECTIONS = 32  # headers of many logs are read side by side
_STYLES = ("auto", "path", "virtual")
_HERE = (BotoCoreError, ClientError, ValueError)


class Client:
    """Requests to S3; every failure is an ``OSError`` (see ``translated``)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: Any = None
        self.clock = Clock()

    def call(self, operation: str, place: Place, **arguments: Any) -> dict[str, Any]:
        """The reply to one operation on a bucket, or on a key in it when there is one.

        Raises:
            OSError: what the store or the network said, as the contract of a log store has it.
        """
        bucket, key = place
        if key:
            arguments["Key"] = key
        client: Any = None
        expired: Any = None
        timed = False
        while True:
            try:
                client = self._client(instead_of=expired)
                reply: dict[str, Any] = getattr(client, operation)(Bucket=bucket, **arguments)
                if operation == "get_object":
                    reply["Body"] = reply["Body"].read()
                return reply
            except _HERE as error:
                # Files and variables may hold new credentials by now; those that renew themselves have done so.
                if expired is None and code_of(error) in EXPIRED:
                    expired = client
                elif not timed and self.clock.learn(error):
                    timed = True
                else:
                    raise translated(error, f"{bucket}/{key or arguments.get('Prefix', '')}") from error

    def _client(self, *, instead_of: Any) -> Any:
        with self._lock:
            if self._made is None or self._made is instead_of:
                self._made = _make_client()
                self.clock.attach(self._made)
            return self._made


def _make_client() -> Any:
    session = boto3.Session()
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    foreign = endpoint is not None and not (urlsplit(endpoint).hostname or "").endswith(".amazonaws.com")
    settings: dict[str, Any] = {}
    if style := _style(session, foreign):
        settings["s3"] = {"addressing_style": style}
    if foreign:  # many servers know no checksums in trailers
        settings |= {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}
    config = Config(
        connect_timeout=_CONNECT,
        read_timeout=_READ,
        max_pool_connections=_CONNECTIONS,
        tcp_keepalive=True,
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        user_agent_extra="proctor",
        **settings,
    )
    # The SDK does not look at AWS_REGION, which all others do. A region is needed to sign; other servers do not care
    # which, and AWS itself says where a bucket is.
    region = os.environ.get("AWS_REGION") or session.region_name or "us-east-1"
    return session.client("s3", region_name=region, config=config)


def _style(session: Any, foreign: bool) -> str | None:
    """How buckets stand in addresses: other servers rarely have a host name for each."""
    asked = os.environ.get("PROCTOR_S3_ADDRESSING_STYLE")
    if asked is not None:
        if asked not in _STYLES:
            raise UsageError(f"PROCTOR_S3_ADDRESSING_STYLE is {asked!r}: use one of {', '.join(_STYLES)}.")
        return asked
    configured = (session._session.get_scoped_config().get("s3") or {}) if foreign else {}
    return "path" if foreign and "addressing_style" not in configured else None
