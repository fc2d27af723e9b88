"""A cluster: where it is, who we are there, and requests to its API, made in worker threads.

Of the ``kubernetes`` client come the kubeconfig with its plugins for credentials, the in-cluster configuration, tokens
that are renewed, and the pool of connections. Objects stay what the server sent: its models would cost more than they
say here.
"""

from __future__ import annotations

import json
import os
import random
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.contracts import PrerequisiteError, UsageError
from proctor.monitor import runtime_dir
from proctor_sandbox_k8s._frames import PROTOCOLS
from proctor_sandbox_k8s._spec import Place

__all__ = ["CALLS", "Cluster", "Refused", "Unreachable", "connect"]

CALLS = 32
"""Requests at once, and connections that are kept."""

_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_PATIENCE = 30.0  # seconds in which a request that may be made again is made again
_FIRST_PAUSE = 0.2
_CONNECT = 10.0


class Refused(Exception):
    """The API server has answered with an error.

    Args:
        status: HTTP's.
        reason: Kubernetes' word for it, such as ``NotFound``.
        message: for people.
        after: seconds to wait before the next attempt, if it says so.
    """

    def __init__(self, status: int, reason: str, message: str, after: float | None = None) -> None:
        super().__init__(message or f"HTTP {status} {reason}".strip())
        self.status = status
        self.reason = reason
        self.after = after

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.status in _TRANSIENT

    @property
    def over_quota(self) -> bool:
        """Whether there is no room in the namespace at this moment."""
        return self.status == 403 and "exceeded quota" in str(self)


class Unreachable(Exception):
    """There was no answer."""

    transient = True
    after: float | None = None


class Cluster:
    """One cluster, as one user.

    Args:
        configuration: of the ``kubernetes`` client.
        context: of the kubeconfig; ``None`` = none, as in a pod.
        namespace: the one to work in unless another is named.
    """

    def __init__(self, configuration: Any, context: str | None, namespace: str) -> None:
        from kubernetes.client.rest import RESTClientObject

        configuration.connection_pool_maxsize = CALLS
        self.context = context
        self.namespace = namespace
        self.host = configuration.host.rstrip("/")
        self._configuration = configuration
        self._pool = RESTClientObject(configuration).pool_manager
        self._lock = threading.Lock()
        self._tls = _tls(configuration) if self.host.startswith("https") else None

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        timeout: float = 30.0,
        patience: float = _PATIENCE,
    ) -> Any:
        """Make a request, and make it again while it fails for a moment; the object of the answer.

        Only for requests that do no harm when they are made twice.

        Args:
            timeout: seconds that one attempt may take.
            patience: seconds in which a new attempt may begin.

        Raises:
            Refused: the server said no.
            Unreachable: nobody answered.
        """
        pause, until = _FIRST_PAUSE, time.monotonic() + patience
        while True:
            try:
                return json.loads(self._once(method, path, query, body, timeout) or b"{}")
            except (Refused, Unreachable) as error:
                if not error.transient or time.monotonic() + pause > until:
                    raise
                time.sleep(max(error.after or 0.0, pause * random.uniform(0.5, 1.0)))
                pause = min(pause * 2, 5.0)

    def text(self, path: str, query: Mapping[str, str]) -> str:
        """A text, such as a log; once.

        Raises:
            Refused, Unreachable: as ``request``.
        """
        return self._once("GET", path, query, None, 10.0).decode("utf-8", "replace")

    def lines(self, path: str, query: Mapping[str, str], silence: float) -> Any:
        """Begin an answer that goes on, such as a watch: urllib3's response, which the caller closes.

        Args:
            silence: seconds without a byte after which reading fails.

        Raises:
            Refused, Unreachable: as ``request``.
        """
        return self._send("GET", path, query, None, silence, stream=True)

    def open_socket(self, path: str, query: Sequence[tuple[str, str]], timeout: float) -> socket.socket:
        """Shake hands for a WebSocket with Kubernetes' channels; the socket.

        Raises:
            Refused, Unreachable: as ``request``.
        """
        import websocket

        url = f"ws{self.host.removeprefix('http')}{path}?{urllib.parse.urlencode(query)}"
        try:
            made = websocket.create_connection(
                url,
                timeout=timeout,
                header=[f"{name}: {value}" for name, value in self._headers().items()],
                subprotocols=list(PROTOCOLS),
                sslopt=self._tls or {},
                suppress_origin=True,
                **self._proxy(),
            )
        except websocket.WebSocketBadStatusException as error:
            headers = {str(name).lower(): value for name, value in (error.resp_headers or {}).items()}
            raise _refusal(error.status_code, headers, error.resp_body or b"") from None
        except (websocket.WebSocketException, OSError) as error:
            raise Unreachable(f"{self.host}: {str(error) or type(error).__name__}") from None
        assert made.sock is not None, "it has just been made"
        return made.sock

    def rest(self) -> None:
        """Close the connections that nobody uses now."""
        self._pool.clear()

    def _once(
        self, method: str, path: str, query: Mapping[str, str] | None, body: Mapping[str, Any] | None, timeout: float
    ) -> bytes:
        data: bytes = self._send(method, path, query, body, timeout, stream=False).data
        return data

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        timeout: float,
        *,
        stream: bool,
    ) -> Any:
        import urllib3

        url = f"{self.host}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        headers = self._headers() | ({"Content-Type": "application/json"} if body is not None else {})
        try:
            response = self._pool.request(
                method,
                url,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=urllib3.Timeout(connect=min(_CONNECT, timeout), read=timeout),
                retries=False,
                preload_content=not stream,
            )
            if response.status >= 400:
                raise _refusal(response.status, response.headers, response.data)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"{self.host}: {error}") from None
        return response

    def _headers(self) -> dict[str, str]:
        with self._lock:  # a token may be renewed here, by a command
            settings = self._configuration.auth_settings()
        found = {each["key"]: each["value"] for each in settings.values() if each.get("in") == "header"}
        if "authorization" not in found and self._configuration.username:
            found["authorization"] = self._configuration.get_basic_auth_token()
        return {"User-Agent": "proctor", **{name: value for name, value in found.items() if value}}

    def _proxy(self) -> dict[str, Any]:
        proxy = getattr(self._configuration, "proxy", None)
        if not proxy:
            return {"http_no_proxy": ["*"]}
        parts = urllib.parse.urlsplit(proxy)
        made: dict[str, Any] = {
            "http_proxy_host": parts.hostname,
            "http_proxy_port": parts.port or 3128,
            "proxy_type": "http" if parts.scheme.startswith("http") else parts.scheme,
        }
        if parts.username:
            made["http_proxy_auth"] = (parts.username, parts.password or "")
        if spared := getattr(self._configuration, "no_proxy", None):
            made["http_no_proxy"] = [each.strip() for each in spared.split(",")]
        return made


def connect(place: Place) -> Cluster:
    """The cluster of a kubeconfig's context; without a kubeconfig, the one whose pod this process runs in.

    Nothing is asked of it.

    Raises:
        UsageError: if there is neither, or the context is not there.
    """
    client, config = _client()
    configuration = client.Configuration()
    files = os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")
    there = any(os.path.exists(os.path.expanduser(each)) for each in files.split(os.pathsep) if each)
    if place.context is None and not there:
        return _inside(configuration, place, files)
    if not there:
        raise UsageError(f"sandbox 'k8s': context {place.context!r} was asked for, but there is no kubeconfig {files}")
    try:
        contexts, active = config.list_kube_config_contexts(config_file=files)
        chosen = place.context or (active or {}).get("name")
        by_name = {each["name"]: each for each in contexts or []}
        if chosen not in by_name:
            known = ", ".join(sorted(by_name)) or "none"
            raise UsageError(f"sandbox 'k8s': there is no context {chosen!r} in {files}; it has {known}")
        config.load_kube_config(
            config_file=files,
            context=chosen,
            client_configuration=configuration,
            persist_config=False,
            temp_file_path=str(runtime_dir()),  # certificates and keys as files: a killed process leaves them
        )
    except (config.ConfigException, OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"sandbox 'k8s': the kubeconfig {files} can't be used: {error}") from None
    own = (by_name[chosen].get("context") or {}).get("namespace")
    return Cluster(configuration, chosen, place.namespace or own or "default")


def _inside(configuration: Any, place: Place, files: str) -> Cluster:
    config = _client()[1]
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise PrerequisiteError(
            f"sandbox 'k8s': there is no cluster: no kubeconfig {files}, and this is no pod of one. Set KUBECONFIG, or "
            "look whether `kubectl get pods` works"
        )
    try:
        config.load_incluster_config(client_configuration=configuration)
        namespace = place.namespace or (_POD / "namespace").read_text("utf-8").strip()
    except (config.ConfigException, OSError) as error:
        raise UsageError(f"sandbox 'k8s': this pod may not use its cluster: {error}") from None
    return Cluster(configuration, None, namespace or "default")


def _client() -> tuple[Any, Any]:
    """The client's package, which takes a second to load, and its part that reads kubeconfigs."""
    from kubernetes import client, config

    return client, config


def _tls(configuration: Any) -> dict[str, Any]:
    data = getattr(configuration, "ca_cert_data", None)
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None, cadata=data or None)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif configuration.assert_hostname is False:
        context.check_hostname = False
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    name = getattr(configuration, "tls_server_name", None)
    return {"context": context, **({"server_hostname": name} if name else {})}


def _refusal(status: int, headers: Any, body: bytes) -> Refused:
    try:
        told = json.loads(body)
    except ValueError:
        told = {}
    if not isinstance(told, dict):
        told = {}
    text = str(told.get("message") or body[:500].decode("utf-8", "replace").strip())
    try:
        after = min(float(headers.get("retry-after") or ""), 30.0)
    except (TypeError, ValueError):
        after = None
    return Refused(status, str(told.get("reason") or ""), text, after)
