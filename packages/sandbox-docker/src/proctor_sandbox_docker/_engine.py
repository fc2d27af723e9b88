"""The engine: its API by the SDK, every call in a thread and within a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import anyio
import requests
import urllib3
from docker import APIClient
from docker.errors import APIError, DockerException
from docker.tls import TLSConfig

from proctor.contracts import SandboxBrokenError, UsageError
from proctor_sandbox_docker._address import Address, find_address, nobody_answers
from proctor_sandbox_docker._stream import connected
from proctor_sandbox_docker._threads import Threads

__all__ = ["CALL_SECONDS", "Engine", "unwell"]

T = TypeVar("T")

CALL_SECONDS = 60.0
"""Seconds that the engine has for an ordinary call."""
_OPEN_SECONDS = 20.0
_SOCKET_SECONDS = 180
"""After so long a thread gives up an answer that nobody waits for any more."""
_CALLS = 64
"""Calls at once; commands that run are not among them."""
_OLDEST = (1, 41)  # Docker 20.10
_NEWEST = (1, 51)
"""The newest version of the API that the tests were run with, Docker 28.5; the SDK alone would take the engine's own,
whose answers may lack what is read here."""

_log = logging.getLogger("proctor.sandbox")


class Engine:
    """One engine. Made without asking it anything; ``open`` must come first.

    Args:
        address: where it listens; by default where the command line of Docker would look.
    """

    def __init__(self, address: Address | None = None) -> None:
        self._given = address
        self._address: Address | None = None
        self._client: APIClient | None = None
        self._lock = anyio.Lock()
        self._threads = Threads("docker-call", _CALLS)
        self.streams = Threads("docker-exec", 4096)
        """For commands: each holds a thread as long as it runs. How many there may be is the core's to say."""
        self.starting = anyio.Semaphore(4)
        """Held by whoever starts a container: many at once take longer than one after the other."""
        self.version: Mapping[str, Any] = {}
        self.info: Mapping[str, Any] = {}

    @property
    def address(self) -> Address:
        """Where it listens."""
        if self._address is None:
            self._address = self._given or find_address()
        return self._address

    @property
    def podman(self) -> bool:
        """Whether it is Podman, which speaks Docker's API nearly."""
        return any("podman" in str(part.get("Name", "")).lower() for part in self.version.get("Components") or ())

    @property
    def rootless(self) -> bool:
        """Whether it runs without root's rights on its host."""
        return any("rootless" in str(option) for option in self.info.get("SecurityOptions") or ())

    @property
    def api_version(self) -> str:
        """The version of the API that both sides speak."""
        return str(self.client.api_version)

    @property
    def client(self) -> APIClient:
        """The SDK's client; it blocks, so it is for threads."""
        if self._client is None:
            raise RuntimeError("the engine was not opened")
        return self._client

    async def open(self) -> None:
        """Connect, and agree on a version of the API.

        Raises:
            PrerequisiteError: there is no engine; the message says what to do.
            UsageError: it does not answer, or is too old.
        """
        async with self._lock:
            if self._client is not None:
                return
            address = self.address
            try:
                with anyio.fail_after(_OPEN_SECONDS):
                    client, version, info = await self._threads.run(lambda: _connect(address))
            except TimeoutError:
                raise nobody_answers(address, f"no answer within {_OPEN_SECONDS:g} s") from None
            except (DockerException, requests.RequestException, OSError, ValueError) as error:
                raise nobody_answers(address, error) from error
            if _numbers(client.api_version) < _OLDEST:
                raise UsageError(
                    f"sandbox docker: the engine at {address.url} is {version.get('Version')} with version "
                    f"{client.api_version} of the API; Docker 20.10 (1.41) or Podman 4 is needed"
                )
            self.version, self.info, self._client = version, info, client

    async def call(
        self,
        what: str,
        work: Callable[[APIClient], T],
        *,
        seconds: float = CALL_SECONDS,
        dispose: Callable[[APIClient, T], None] | None = None,
    ) -> T:
        """What ``work`` returns, called with the SDK's client in a thread.

        A call is made once: nothing here knows whether a lost one was heard.

        Args:
            what: is done, for messages: ``start container``.
            work: what is called.
            seconds: that the engine has; after that, and when the caller is cancelled, the thread is left alone.
            dispose: called in the thread with a result that nobody waits for any more.

        Raises:
            SandboxBrokenError: the engine does not answer, or says that it failed itself.
            docker.errors.APIError: it refuses.
        """
        client = self.client
        late = None if dispose is None else lambda made: dispose(client, made)
        try:
            with anyio.fail_after(seconds):
                return await self._threads.run(lambda: work(client), dispose=late)
        except TimeoutError:
            self.trouble(what, f"no answer within {seconds:g} s")
        except APIError as error:
            if unwell(error):
                self.trouble(what, error)
            raise
        except (requests.RequestException, urllib3.exceptions.HTTPError, ConnectionError) as error:
            self.trouble(what, error)

    async def settle(self, seconds: float) -> bool:
        """Wait until the threads that were left alone have removed what they made; whether they have."""
        return await self._threads.settle(seconds)

    def later(self, work: Callable[[APIClient], object]) -> None:
        """Call ``work`` in a thread that nobody waits for."""
        client = self.client
        self._threads.start(lambda: work(client))

    def trouble(self, what: str, why: object) -> NoReturn:
        """Raise what says that the engine is at fault.

        Raises:
            SandboxBrokenError: always.
        """
        cause = why if isinstance(why, BaseException) else None
        said = getattr(why, "explanation", None) or why
        raise SandboxBrokenError(
            f"Docker: {what}: {said} (engine at {self.address.url}; `docker info` shows whether it is well)"
        ) from cause


def unwell(error: APIError) -> bool:
    """Whether it is the engine that is at fault, and not what it was asked for."""
    return error.status_code is None or int(error.status_code) >= 500


def _connect(address: Address) -> tuple[APIClient, Mapping[str, Any], Mapping[str, Any]]:
    """A client, and what the engine says of itself; blocks."""
    if address.socket_path is not None:
        connected(address).close()  # where nobody listens, the SDK would leave its own socket open
    tls: Any = False
    if address.tls:
        pair = (address.cert, address.key) if address.cert and address.key else None
        tls = TLSConfig(client_cert=pair, ca_cert=address.ca, verify=address.verify)

    def client_of(api: str) -> APIClient:
        return APIClient(
            base_url=address.url, version=api, tls=tls, timeout=_SOCKET_SECONDS, max_pool_size=_CALLS, num_pools=8
        )

    client = client_of("auto")
    version = client.version()
    if _numbers(client.api_version) > _NEWEST:
        oldest = _numbers(version.get("MinAPIVersion") or "0")
        client.close()
        client = client_of(".".join(map(str, max(_NEWEST, oldest))))
    return client, version, client.info()


def _numbers(api: object) -> tuple[int, ...]:
    return tuple(int(part) for part in str(api).split("."))
